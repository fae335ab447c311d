/*
Copyright The Cozystack Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package gitops

import (
	"errors"
	"fmt"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// script is a health check in Lua, as Argo CD runs it: for one kind, with the object in obj, and with no library that
// could reach anything else.
type script struct {
	// kind is the end of the script's key in argocd-cm.
	kind string
	text string
}

var _ health.HealthOverride = script{}

func (s script) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	if kind := object.GroupVersionKind(); kind.Group+"_"+kind.Kind != s.kind {
		return nil, nil
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, fmt.Errorf("open library %s: %w", name, err)
		}
	}
	state.SetGlobal("obj", toLua(state, object.Object))
	if err := state.DoString(s.text); err != nil {
		return nil, fmt.Errorf("run the health check: %w", err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, errors.New("the health check returns no table")
	}
	return &health.HealthStatus{
		Status:  health.HealthStatusCode(lua.LVAsString(answer.RawGetString("status"))),
		Message: lua.LVAsString(answer.RawGetString("message")),
	}, nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		table := state.CreateTable(len(v), 0)
		for _, item := range v {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	}
	return lua.LNil
}
