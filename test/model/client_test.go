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
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const api = "/apis/images.cozystack.io/v1alpha1/"

// client keeps a copy of what it may see of one kind, as informers do, and checks what it is sent against what it
// has.
type client struct {
	*world
	name string

	// What it asks for.
	user, path, selector string
	streams              bool // it has its initial list streamed
	fromNow              bool // it watches without listing
	pageSize             int  // it lists in pages of that size, unless it is zero
	bookmarks            bool
	timeout              int // of its watches, in seconds; zero for none
	limit                int // it reads slowly, so that the server is held back; zero for one that does not

	// What it has.
	moment
	// isStale is true for a store that may have parts from before a change of access, which it was not told of.
	isStale bool
	// past are moments that it had before.
	past []moment

	watch *stream
	line  []byte // the beginning of one
	// initial is true while a watch sends what was there before it.
	initial bool
	// last is the version of the newest event, or that from which the watch goes on.
	last uint64
	// expires is true for a watch that ends by itself.
	expires bool
	// watched is the generation of access in which the watch began.
	watched int

	pages *pages
}

// moment is what a client has at a version.
type moment struct {
	store state
	// version is empty while the client knows nothing, or does not know the version.
	version string
	// home is the server whose version it is, and generation that of the access of the client.
	home       *server
	generation int
}

// pages are a list that is read page by page.
type pages struct {
	moment
	token, last string
	// want is the same list, read at once; nil if that came too late.
	want state
}

func (c *client) String() string {
	pace := "fast"
	if c.limit > 0 {
		pace = "slow"
	}
	return fmt.Sprintf("%s (%s, %s at %s%s, access to %v)", c.name, pace, c.user, c.path, c.selector, c.access.namespaces(c.user))
}

func (c *client) seesAll() bool { return c.user == operator || strings.Contains(c.path, "options") }

func (c *client) violated(format string, args ...any) {
	c.fail("%v: %s", c, fmt.Sprintf(format, args...))
}

// act does one thing that a client does.
func (c *client) act() {
	switch {
	case c.watch != nil && c.oneIn(3):
		c.cut()
	case c.watch != nil:
		c.read(c.IntN(8))
	case c.pages != nil:
		c.nextPage()
	case c.version == "" || c.oneIn(10):
		c.begin()
	case !c.oneIn(5):
		c.resume()
	}
}

// begin gets everything anew.
func (c *client) begin() {
	c.forget()
	switch {
	case c.pageSize > 0:
		c.nextPage()
	case c.streams:
		c.open("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", true)
	case c.fromNow:
		c.open("", true)
	default:
		c.list()
	}
}

func (c *client) forget() {
	c.moment, c.isStale, c.pages = moment{}, false, nil
}

func (c *client) list() {
	c.tally.Lists++
	got, status := c.get(c.user, c.path, c.selector+pick(c.Rand, []string{"", "&resourceVersion=0"}))
	if status != http.StatusOK {
		c.expectUnready(status)
		return
	}
	c.moment = moment{store: got.items, version: got.version, home: c.server, generation: c.access.generation(c.user)}
}

func (c *client) nextPage() {
	c.tally.Pages++
	p, query := c.pages, fmt.Sprintf("&limit=%d%s", c.pageSize, c.selector)
	if p != nil {
		query += "&continue=" + p.token
	}
	got, status := c.get(c.user, c.path, query)
	switch {
	case status == http.StatusGone && p != nil:
		c.tally.Gone++
		c.expectGone(p.home, parseVersion(p.version), "a continued list")
		c.pages = nil
		return
	case status != http.StatusOK:
		c.expectUnready(status)
		return
	}
	if p == nil {
		p = &pages{moment: moment{store: state{}, version: got.version, home: c.server, generation: c.access.generation(c.user)}}
		if at, status := c.get(c.user, c.path, c.selector+exactly(got.version)); status == http.StatusOK {
			p.want = at.items
		}
	}
	if p.home != c.server {
		c.violated("a token of another server is good for a page")
	}
	c.addPage(p, got)
}

func (c *client) addPage(p *pages, got listed) {
	if got.version != p.version {
		c.violated("a page is of %s, and the first one of %s", got.version, p.version)
	}
	for key := range got.items {
		if key <= p.last {
			c.violated("%s is in a page after %s", key, p.last)
		}
	}
	maps.Copy(p.store, got.items)
	p.last, p.token = max(p.last, got.last), got.token
	if c.pages = p; p.token != "" {
		return
	}
	c.pages, c.moment = nil, p.moment
	c.isStale = p.generation != c.access.generation(c.user)
	if p.want != nil && !c.isStale {
		if diff := difference(p.store, p.want, sameVersion); diff != "" {
			c.violated("pages at %s are not the list at it:\n%s", p.version, diff)
		}
	}
}

// resume goes on from the version that the client has.
func (c *client) resume() {
	c.tally.Resumes++
	c.open("&resourceVersion="+c.version, false)
}

func (c *client) open(query string, initial bool) {
	query = "watch=1" + query + c.selector
	if c.bookmarks || c.streams {
		query += "&allowWatchBookmarks=true"
	}
	if c.expires = c.timeout > 0; c.expires {
		query += fmt.Sprintf("&timeoutSeconds=%d", c.timeout)
	}
	c.tally.Watches++
	c.watched = c.access.generation(c.user)
	c.watch = c.request(c.user, c.path, query, c.limit)
	c.line, c.initial, c.last = nil, initial, parseVersion(c.version)
	if initial {
		c.moment = moment{store: state{}, home: c.server, generation: c.watched}
	} else if c.generation != c.watched {
		c.isStale = true
	}
}

// cut ends the connection after some of what has arrived.
func (c *client) cut() {
	c.tally.Cuts++
	c.read(c.IntN(c.watch.arrived() + 1))
	c.hangUp()
}

func (c *client) hangUp() {
	if c.watch != nil {
		c.watch.cancel()
		c.watch, c.line = nil, nil
	}
	if c.initial {
		c.initial = false
		c.forget()
	}
}

// read takes up to n chunks of what has arrived.
func (c *client) read(n int) {
	w := c.watch
	chunks, over := w.take(n)
	for _, chunk := range chunks {
		c.line = append(c.line, chunk.bytes...)
		for c.watch == w && w.statusCode() == http.StatusOK {
			line, rest, isWhole := bytes.Cut(c.line, []byte("\n"))
			if !isWhole {
				break
			}
			c.line = rest
			c.receive(line, chunk.at)
		}
	}
	if over && c.watch == w {
		c.ended(w)
	}
}

// ended is called when the server has ended a watch without a word.
func (c *client) ended(w *stream) {
	line, home := c.line, c.home
	c.hangUp()
	switch status := w.statusCode(); {
	case status == http.StatusOK && len(line) == 0:
		c.tally.Timeouts++
		if !c.expires && home == c.server {
			c.violated("a watch ended without a word")
		}
	case status != http.StatusOK:
		c.did("%s cannot watch: %d %s", c.name, status, line)
		c.expectUnready(status)
	}
}

func (c *client) receive(line []byte, at time.Time) {
	c.expectNothingHidden(line, at, noticeTime)
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		c.violated("%v in %s", err, line)
		return
	}
	if e.Type == "ERROR" {
		c.receiveError(e)
		return
	}
	o, err := c.parser.parse(e.Object)
	key, version := o.key(), parseVersion(o.ResourceVersion)
	if c.fromNow && e.Type != "ADDED" && e.Type != "BOOKMARK" {
		c.initial = false // which is all that there is to see of their end, without bookmarks
	}
	switch {
	case err != nil:
		c.violated("%v", err)
	case e.Type == "BOOKMARK":
		c.receiveBookmark(o.metadata, version)
	case c.initial:
		c.tally.Initial++
		if _, ok := c.store[key]; ok || e.Type != "ADDED" {
			c.violated("initial event %s", line)
		}
		c.store[key] = o.item
	default:
		c.tally.Events++
		if version <= c.last {
			c.violated("event at %d after one at %d: %s", version, c.last, line)
		}
		c.last = version
		if c.version != "" {
			c.version = o.ResourceVersion
		}
		c.change(e.Type, key, o.item)
	}
}

func (c *client) change(event, key string, it item) {
	old, isKnown := c.store[key]
	if isKnown != (event != "ADDED") && !c.mayMiss() {
		c.violated("%s of %s, which is known: %t", event, key, isKnown)
	}
	if event == "DELETED" {
		delete(c.store, key)
		return
	}
	if isKnown && old.content == it.content && c.isSpared() {
		c.violated("an event that changes nothing: %s %s", key, it.content)
	}
	c.store[key] = it
}

// isSpared is true for a client that must not have been sent its last event if that changed nothing. Who is sent what it
// may see can only be spared an event while the server remembers what was before.
func (c *client) isSpared() bool {
	if c.seesAll() {
		return true
	}
	now, status := c.get(operator, c.path, "&limit=1")
	return c.limit == 0 && !c.isStale && status == http.StatusOK && parseVersion(now.version)-c.last < window
}

// mayMiss is true for a client that may have objects which it does not see any more, or not have some that it sees: it
// was not told of a change of access, and there are objects that are hidden.
func (c *client) mayMiss() bool { return c.isStale && c.path == "catalogentries" }

func (c *client) receiveBookmark(m metadata, version uint64) {
	c.tally.Bookmarks++
	isEnd := m.Annotations[metav1.InitialEventsAnnotationKey] == "true"
	switch {
	case !c.bookmarks && !c.streams:
		c.violated("a bookmark that nobody asked for")
	case isEnd != c.initial:
		c.violated("a bookmark that ends the initial events: %t", isEnd)
	case version < c.last:
		c.violated("a bookmark at %d after %d", version, c.last)
	}
	c.initial = false
	if isEnd || c.version != "" {
		c.version = m.ResourceVersion
	}
	c.last = version
}

func (c *client) receiveError(e event) {
	status := e.status()
	if status.Code != http.StatusGone {
		c.violated("%s", e.Object)
		return
	}
	c.tally.Gone++
	if strings.Contains(status.Message, "what you may see has changed") {
		if c.access.generation(c.user) == c.watched {
			c.violated("410 for a change of access that there was not")
		}
	} else if c.limit == 0 {
		c.expectGone(c.home, c.last, "a watch")
	}
	c.hangUp()
	c.forget()
}

// expectNothingHidden checks that no word of those is there whose pools the client may not see.
func (c *client) expectNothingHidden(sent []byte, at time.Time, grace time.Duration) {
	if c.seesAll() {
		return
	}
	for _, word := range c.access.hidden(c.user, at, grace) {
		if bytes.Contains(sent, []byte(word)) {
			c.violated("is told of %s: %s", word, sent)
		}
	}
}

// expectGone checks that a version has really become too old.
func (c *client) expectGone(home *server, version uint64, what string) {
	if home != c.server {
		return
	}
	now, status := c.get(operator, c.path, "&limit=1")
	if status == http.StatusOK && parseVersion(now.version)-version <= window {
		c.violated("410 for %s at %d, while the newest event is at %s", what, version, now.version)
	}
}

// drain takes all that the server has to say, whether it was held back or not.
func (c *client) drain(quiet func()) {
	for c.watch != nil {
		before := c.watch
		c.read(before.arrived())
		quiet()
		if c.watch != before || before.arrived() == 0 {
			break
		}
	}
	if c.watch != nil {
		c.read(0) // it may be over
	}
}

// check compares what the client has with what the server says, which is at rest.
func (c *client) check() {
	isLive := c.watch != nil && c.watch.arrived() == 0 && c.limit == 0
	if isLive && c.initial && c.fromNow {
		c.initial = false // the initial events have no end that can be seen
	}
	switch {
	case isLive && c.initial:
		c.violated("a list does not end")
	case isLive:
		c.compareWithList()
	case c.version != "" && c.oneIn(3):
		c.compareWithPast(c.moment)
	}
	if len(c.past) > 0 && c.oneIn(8) {
		c.compareWithPast(pick(c.Rand, c.past))
	}
	if c.version != "" && !c.isStale && !c.initial {
		now := c.moment
		now.store = maps.Clone(now.store)
		c.past = append(c.past, now)
	}
}

func (c *client) compareWithList() {
	if !c.access.isSettled(c.user) {
		return
	}
	want, ok := c.fresh(c.user, c.path, c.selector)
	if !ok {
		return
	}
	c.tally.Comparisons++
	got, versions := c.store, c.comparableVersions()
	switch {
	case c.mayMiss():
		return
	case c.isStale:
		got, want.items, versions = got.keys(), want.items.keys(), anyVersion
	}
	if diff := difference(got, want.items, versions); diff != "" {
		c.violated("what it has is not what is listed at %s:\n%s", want.version, diff)
	}
}

func (c *client) compareWithPast(m moment) {
	if m.generation != c.access.generation(c.user) || !c.access.isSettled(c.user) || c.isStale && m.version == c.version {
		return
	}
	c.tally.Exact++
	got, status := c.get(c.user, c.path, c.selector+exactly(m.version))
	switch {
	case status == http.StatusGone:
		c.tally.Gone++
		c.expectGone(m.home, parseVersion(m.version), "a list of the past")
	case status != http.StatusOK:
		c.expectUnready(status)
	case m.home != c.server:
		c.violated("a version of another server is good for a list")
	default:
		if diff := difference(m.store, got.items, c.comparableVersions()); diff != "" || got.version != m.version {
			c.violated("what it had at %s is not what is listed of it as %s:\n%s", m.version, got.version, diff)
		}
	}
}

func (c *client) comparableVersions() func(got, want string) bool {
	if c.seesAll() {
		return sameVersion
	}
	return notNewer
}

func exactly(version string) string {
	return "&resourceVersionMatch=Exact&resourceVersion=" + version
}
