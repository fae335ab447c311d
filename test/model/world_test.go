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

package model

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// world is one sequence: the inputs, a server on them, and its clients.
type world struct {
	*rand.Rand
	in      *inputs
	access  *access
	server  *server
	clients []*client
	tally   tally
	parser  parser

	step   int
	traces []trace
	err    error
	// lists are what the server says now that it is at rest.
	lists map[string]listed
}

// trace is something that was done, to be written down if it is asked for.
type trace struct {
	step   int
	format string
	args   []any
}

// failure is a sequence that does not hold.
type failure struct {
	err    error
	step   int
	traces []trace
}

func (f *failure) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%v\n\nwhat was done:\n", f.err)
	for _, t := range f.traces {
		fmt.Fprintf(&out, "%3d  %s\n", t.step, fmt.Sprintf(t.format, t.args...))
	}
	return out.String()
}

// sequence runs that many steps of a seed.
func sequence(t *testing.T, seed uint64, steps int) (tally, *failure) {
	var w *world
	synctest.Test(t, func(*testing.T) {
		<-time.After(time.Until(time.Date(2026, time.December, 1, 0, 0, 0, 0, time.UTC)))
		w = newWorld(seed)
		w.run(steps)
	})
	w.tally.Sequences++
	if w.err != nil {
		return w.tally, &failure{err: w.err, step: w.step, traces: w.traces}
	}
	return w.tally, nil
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), access: newAccess(), parser: parser{}}
	w.in = newInputs(w.Rand)
	for n := range 6 {
		w.clients = append(w.clients, w.newClient(fmt.Sprintf("client %d", n), n))
	}
	return w
}

func (w *world) oneIn(n int) bool { return w.IntN(n) == 0 }

// newClient makes one of a few kinds. The first ones are the same in every world.
func (w *world) newClient(name string, n int) *client {
	c := &client{
		world: w, name: name, user: operator, path: "workerimages",
		streams: w.oneIn(2), bookmarks: w.oneIn(2),
	}
	switch {
	case n == 1:
		c.path = "catalogentries"
	case n == 2:
		c.path = pick(w.Rand, []string{"options", "namespaces/tenant-a/options", "namespaces/cozy-public/options"})
	case n >= 3:
		c.user = pick(w.Rand, []string{operator, "tenant-a", "tenant-a", "tenant-b"})
		c.path = pick(w.Rand, []string{"workerimages", "workerimages", "catalogentries"})
	}
	if n != 0 && w.oneIn(3) {
		c.selector = w.selector(c.path)
	}
	if !c.streams {
		c.fromNow = w.oneIn(6)
		if !c.fromNow && w.oneIn(3) {
			c.pageSize = 1 + w.IntN(3)
		}
	}
	if w.oneIn(4) {
		c.timeout = 4 + w.IntN(20)
	}
	if n > 2 && w.oneIn(4) {
		c.limit = 1 + w.IntN(4)
	}
	return c
}

func (w *world) selector(path string) string {
	id := w.in.image()
	common := []string{"metadata.name%3D" + id.Name(), "spec.version%3D" + id.Version, "spec.schematicID!%3D" + id.SchematicID}
	switch {
	case strings.HasSuffix(path, "options"):
		return "&fieldSelector=metadata.name%3Dworkerimage"
	case path == "catalogentries":
		common = append(common, "status.phase%3DAvailable", "status.phase!%3DMissing")
	case w.oneIn(3):
		return "&labelSelector=" + pick(w.Rand, []string{"tier%3D0", "tier", "!tier"})
	default:
		common = append(common, "status.phase%3DReady", "status.phase!%3DFailed", "status.storageClass.effective%3Dreplicated")
	}
	return "&fieldSelector=" + pick(w.Rand, common)
}

func (w *world) run(steps int) {
	for range w.IntN(20) {
		w.did("%s", w.in.change())
	}
	w.start()
	w.settle()
	for w.step = 1; w.step <= steps && w.err == nil; w.step++ {
		w.tally.Steps++
		w.act()
		w.settle()
	}
	if w.err == nil {
		w.finish()
	}
	for _, c := range w.clients {
		c.hangUp()
	}
	if err := w.server.stop(); err != nil {
		w.fail("the server ended with %v", err)
	}
}

// act does a few things at once.
func (w *world) act() {
	for range 1 + w.IntN(6) {
		switch n := w.IntN(100); {
		case n < 50:
			for range 1 + w.IntN(3) {
				w.tally.Changes++
				w.did("%s", w.in.change())
			}
		case n < 80:
			c := pick(w.Rand, w.clients)
			c.act()
			w.did("%s at %q", c.name, c.version)
		case n < 91:
			w.disturb(pick(w.Rand, w.in.all()))
		case n < 95:
			w.pass(time.Duration(w.IntN(1200)) * time.Millisecond)
		case n < 99:
			w.changeAccess()
		default:
			w.restart()
		}
	}
}

// disturb does something to a source.
func (w *world) disturb(s *source) {
	w.tally.Disturbances++
	if s.failing() {
		w.did("%s recovers", s.name)
		s.recover()
		return
	}
	switch w.IntN(7) {
	case 0, 1:
		w.did("%s is held up", s.name)
		s.hold()
	case 2:
		w.did("%s goes on", s.name)
		s.release()
	case 3:
		w.did("%s repeats itself", s.name)
		s.repeat(w.Rand)
	case 4:
		w.did("the watches of %s end", s.name)
		s.endWatches()
	case 5:
		w.did("%s must be listed again", s.name)
		s.hold()
		for range w.IntN(6) { // of which a list alone can tell, where they are of this kind
			w.tally.Changes++
			w.did("%s", w.in.change())
		}
		s.expire()
	default:
		w.did("%s fails", s.name)
		s.fail(w.Rand)
	}
}

// changeAccess changes what a user may see while nothing moves, so that who has begun to read has asked.
func (w *world) changeAccess() {
	w.tally.AccessChanges++
	synctest.Wait()
	user := pick(w.Rand, tenants[:2])
	if w.oneIn(4) {
		w.access.toggleSilence(user)
		w.did("somebody answers about %s, or nobody any more", user)
	} else {
		namespace := pick(w.Rand, tenants)
		w.access.toggle(user, namespace)
		w.did("what %s may see in %s changes", user, namespace)
	}
	for _, c := range w.clients {
		if isBehind := c.limit > 0 || c.pages != nil; c.user == user && isBehind {
			c.isStale = true
		}
	}
}

func (w *world) start() {
	var err error
	if w.server, err = serve(w.in, w.access); err != nil {
		w.fail("start the server: %v", err)
	}
}

// restart ends the server, and with it all that is connected to it, and starts another.
func (w *world) restart() {
	w.tally.Restarts++
	w.did("the server is restarted")
	for _, c := range w.clients {
		if c.watch != nil {
			c.read(w.IntN(c.watch.arrived() + 1))
		}
		c.hangUp()
	}
	if err := w.server.stop(); err != nil {
		w.fail("the server ended with %v", err)
	}
	w.start()
}

func (w *world) pass(d time.Duration) { <-time.After(d) }

// settle waits until nothing moves, lets time pass or not, and compares.
func (w *world) settle() {
	synctest.Wait()
	switch n := w.IntN(10); {
	case n < 3:
		w.pass(2200 * time.Millisecond)
	case n == 3:
		w.pass(13 * time.Second)
	}
	w.compare(w.oneIn(4))
}

// compare holds all clients against the server, and the server against the oracle where that is asked for.
func (w *world) compare(withOracle bool) {
	withOracle = withOracle && w.in.areCurrent()
	if withOracle {
		w.pass(2200 * time.Millisecond) // until nothing waits for the end of an interval
	}
	synctest.Wait()
	w.lists = map[string]listed{}
	for _, c := range w.clients {
		if c.limit == 0 || w.oneIn(3) {
			c.drain(synctest.Wait)
		}
	}
	for _, c := range w.clients {
		c.check()
	}
	if withOracle {
		w.compareWithOracle()
	}
}

func (w *world) compareWithOracle() {
	w.tally.Oracles++
	want, err := ask(w.in, w.parser)
	if err != nil {
		w.fail("the oracle: %v", err)
		return
	}
	for path, items := range map[string]state{"workerimages": want.images, "catalogentries": want.entries, "options": want.options} {
		got, ok := w.fresh(operator, path, "")
		if !ok {
			continue
		}
		if diff := difference(got.items.timeless(), items.timeless(), anyVersion); diff != "" {
			w.fail("the %s are not what follows from the inputs:\n%s", path, diff)
		}
	}
}

// finish makes everything readable, and compares everything.
func (w *world) finish() {
	w.in.settle()
	for range 3 {
		w.pass(5 * time.Second)
		synctest.Wait()
	}
	for _, s := range w.in.all() {
		if !s.isCurrent() {
			w.fail("%s can be read, and nobody does", s.name)
		}
	}
	for _, c := range w.clients {
		c.limit, c.timeout = 0, 0
		c.drain(synctest.Wait)
		c.hangUp() // one that was slow goes on from where it is
	}
	for range 2 { // who is told that its version is too old begins again
		for _, c := range w.clients {
			for c.watch == nil && w.err == nil {
				if c.version != "" {
					c.resume()
				} else {
					c.begin()
				}
				for c.pages != nil {
					c.nextPage()
				}
			}
		}
		synctest.Wait()
		for _, c := range w.clients {
			c.drain(synctest.Wait)
		}
	}
	w.compare(true)
}

// request starts a request.
func (w *world) request(user, path, query string, limit int) *stream {
	w.tally.Requests++
	s, err := w.server.request(user, api+path+"?"+strings.TrimPrefix(query, "&"), limit)
	if err != nil {
		w.fail("request %s: %v", query, err)
	}
	return s
}

// get is a list.
func (w *world) get(user, path, query string) (listed, int) {
	status, body := w.request(user, path, query, 0).answer()
	if user != operator && !strings.HasSuffix(path, "options") {
		for _, word := range w.access.hidden(user, time.Now(), 0) {
			if strings.Contains(string(body), word) {
				w.fail("%s is told of %s: %s", user, word, body)
			}
		}
	}
	if status != http.StatusOK {
		if status != http.StatusGone && status != http.StatusServiceUnavailable {
			w.fail("%s at %s?%s: %d %s", user, path, query, status, body)
		}
		return listed{}, status
	}
	out, err := w.parser.parseList(body)
	if err != nil {
		w.fail("%s at %s?%s: %v", user, path, query, err)
	}
	return out, status
}

// fresh is a list that is made once while the server is at rest.
func (w *world) fresh(user, path, selector string) (listed, bool) {
	key := user + " " + path + selector
	if out, ok := w.lists[key]; ok {
		return out, true
	}
	out, status := w.get(user, path, selector)
	if status != http.StatusOK {
		w.expectUnready(status)
		return out, false
	}
	w.lists[key] = out
	return out, true
}

// expectUnready checks that a server has a reason to turn requests away.
func (w *world) expectUnready(status int) {
	synctest.Wait()
	if status != http.StatusServiceUnavailable {
		w.fail("status %d", status)
	}
	if w.in.dataVolumes.isCurrent() && w.in.claims.isCurrent() {
		w.tally.Unready++ // it may have been asked before it was ready
		if _, status := w.get(operator, "options", ""); status != http.StatusOK {
			w.fail("everything can be read, and requests are turned away with %d", status)
		}
	}
}

func (w *world) did(format string, args ...any) {
	w.traces = append(w.traces, trace{w.step, format, args})
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (s state) keys() state {
	out := state{}
	for key := range s {
		out[key] = item{}
	}
	return out
}
