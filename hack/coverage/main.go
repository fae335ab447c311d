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

// coverage prints how many statements of each package a profile of go test covers, and fails where a package that has
// a mark stays below it. Generated code does not count.
//
//	coverage --mark 95 PROFILE PACKAGE...
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"
)

func main() {
	mark := pflag.Float64("mark", 95, "per cent of the statements that must be covered in each PACKAGE")
	pflag.Parse()
	if pflag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: coverage [--mark PERCENT] PROFILE PACKAGE...")
		os.Exit(2)
	}
	if err := run(os.Stdout, pflag.Arg(0), *mark, pflag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, profile string, mark float64, marked []string) error {
	file, err := os.Open(profile)
	if err != nil {
		return err
	}
	defer file.Close()
	packages, err := read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", profile, err)
	}
	return report(out, packages, mark, marked)
}

// count is of statements.
type count struct {
	covered, all int
}

func (c count) percent() float64 {
	return 100 * float64(c.covered) / float64(c.all)
}

var (
	block     = regexp.MustCompile(`^(.+\.go):([\d.,]+) (\d+) (\d+)$`)
	generated = regexp.MustCompile(`/(pkg/generated/.*|zz_generated\.[^/]*)$`)
)

// read returns the counts of each package in a profile.
func read(profile io.Reader) (map[string]count, error) {
	// The tests of several packages may have met the same block.
	blocks := map[string]count{}
	packages := map[string]count{}
	lines := bufio.NewScanner(profile)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "mode: ") {
			continue
		}
		fields := block.FindStringSubmatch(lines.Text())
		if fields == nil {
			return nil, fmt.Errorf("not a line of a coverage profile: %q", lines.Text())
		}
		if generated.MatchString(fields[1]) {
			continue
		}
		statements, err := strconv.Atoi(fields[3])
		if err != nil {
			return nil, err
		}
		met := count{all: statements}
		if fields[4] != "0" {
			met.covered = statements
		}

		key := fields[1] + ":" + fields[2]
		before := blocks[key]
		met.covered = max(met.covered, before.covered)
		blocks[key] = met
		sum := packages[path.Dir(fields[1])]
		sum.all += met.all - before.all
		sum.covered += met.covered - before.covered
		packages[path.Dir(fields[1])] = sum
	}
	return packages, lines.Err()
}

// report writes a table, the packages with a mark first.
func report(out io.Writer, packages map[string]count, mark float64, marked []string) error {
	names := slices.SortedFunc(maps.Keys(packages), func(a, b string) int {
		if inA, inB := slices.Contains(marked, a), slices.Contains(marked, b); inA != inB {
			if inA {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "statements\tcovered\tmark\t  package")
	for _, name := range names {
		wanted := ""
		if slices.Contains(marked, name) {
			wanted = fmt.Sprintf("%.0f%%", mark)
		}
		fmt.Fprintf(table, "%d\t%.1f%%\t%s\t  %s\n", packages[name].all, packages[name].percent(), wanted, name)
	}
	if err := table.Flush(); err != nil {
		return err
	}

	var below []string
	for _, name := range marked {
		switch got, ok := packages[name]; {
		case !ok:
			return fmt.Errorf("the profile has nothing of %s", name)
		case got.percent() < mark:
			below = append(below, fmt.Sprintf("%s (%.1f%%)", name, got.percent()))
		}
	}
	if len(below) > 0 {
		return fmt.Errorf("less than %.0f%% of the statements are covered in %s", mark, strings.Join(below, ", "))
	}
	return nil
}
