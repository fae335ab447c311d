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

package balance

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a connection may take on a machine that is busy with other things.
const patience = 20 * time.Second

func TestConnectionsGoToEachBackendInTurn(t *testing.T) {
	b := listen(t, startServer(t, "a").address, startServer(t, "b").address, startServer(t, "c").address)
	var got []string
	for range 6 {
		got = append(got, dial(t, b).name)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "a", "b", "b", "c", "c"}) {
		t.Errorf("got %v", got)
	}
	if open := b.Open(); !slices.Equal(open, []int{2, 2, 2}) {
		t.Errorf("%v are open", open)
	}
}

func TestWithAffinityAClientStaysWithItsBackend(t *testing.T) {
	b := listen(t, startServer(t, "a").address, startServer(t, "b").address)
	b.SetAffinity(true)
	first := dial(t, b).name
	for range 4 {
		if got := dial(t, b).name; got != first {
			t.Errorf("got %s after %s", got, first)
		}
	}
	b.SetAffinity(false)
	if one, other := dial(t, b).name, dial(t, b).name; one == other {
		t.Errorf("without affinity both go to %s", one)
	}
}

func TestAClientWhoseBackendIsWithdrawnGetsAnother(t *testing.T) {
	b := listen(t, startServer(t, "a").address, startServer(t, "b").address)
	b.SetAffinity(true)
	first := dial(t, b)
	b.Withdraw(slices.Index([]string{"a", "b"}, first.name))
	if got := dial(t, b).name; got == first.name {
		t.Errorf("got %s again", got)
	}
	if err := first.echo("still here"); err != nil {
		t.Errorf("the open connection: %v", err)
	}
}

func TestABackendThatRefusesIsPassedOver(t *testing.T) {
	gone := startServer(t, "gone")
	b := listen(t, gone.address, startServer(t, "b").address)
	gone.stop()
	for range 3 {
		if got := dial(t, b).name; got != "b" {
			t.Errorf("got %s", got)
		}
	}
}

func TestAFlipCutsTheConnectionsToTheOthersOnly(t *testing.T) {
	b := listen(t, startServer(t, "a").address, startServer(t, "b").address)
	one, two := dial(t, b), dial(t, b)
	if one.name == "b" {
		one, two = two, one
	}
	b.FlipTo(1)
	if err := one.echo("cut"); err == nil {
		t.Error("the connection to a works")
	}
	if err := two.echo("kept"); err != nil {
		t.Errorf("the connection to b: %v", err)
	}
	for range 3 {
		if got := dial(t, b).name; got != "b" {
			t.Errorf("a new connection goes to %s", got)
		}
	}
	b.Spread()
	if one, other := dial(t, b).name, dial(t, b).name; one == other {
		t.Errorf("after that both go to %s", one)
	}
}

func TestACutEndsAllConnections(t *testing.T) {
	b := listen(t, startServer(t, "a").address, startServer(t, "b").address)
	one, two := dial(t, b), dial(t, b)
	b.Cut()
	if one.echo("cut") == nil || two.echo("cut") == nil {
		t.Error("a connection works")
	}
	if err := dial(t, b).echo("new"); err != nil {
		t.Errorf("a new one: %v", err)
	}
}

func TestAClientWithoutABackendIsTurnedAway(t *testing.T) {
	b := listen(t, startServer(t, "a").address)
	b.Withdraw(0)
	if err := visit(b.Address()); err == nil {
		t.Error("it is served")
	}
	b.Admit(0)
	if got := dial(t, b).name; got != "a" {
		t.Errorf("got %s", got)
	}
}

func TestTheEndOfOneDirectionIsPassedOn(t *testing.T) {
	b := listen(t, startServer(t, "a").address)
	c := dial(t, b)
	if err := c.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reader.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func listen(t *testing.T, backends ...string) *Balancer {
	t.Helper()
	b, err := Listen(t.Context(), "127.0.0.1:0", backends...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// client is a connection to a server, which has said its name.
type client struct {
	conn   net.Conn
	reader *bufio.Reader
	name   string
}

func dial(t *testing.T, b *Balancer) *client {
	t.Helper()
	conn, err := net.Dial("tcp", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &client{conn: conn, reader: bufio.NewReader(conn)}
	line, err := c.reader.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c.name = strings.TrimSpace(line)
	return c
}

func (c *client) echo(text string) error {
	if _, err := io.WriteString(c.conn, text+"\n"); err != nil {
		return err
	}
	got, err := c.reader.ReadString('\n')
	if err == nil && got != text+"\n" {
		err = errors.New("it says " + got)
	}
	return err
}

// visit fails unless somebody answers at an address.
func visit(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// server says its name on each connection and repeats what it hears.
type server struct {
	address string
	stop    func()
}

func startServer(t *testing.T, name string) server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				if _, err := io.WriteString(conn, name+"\n"); err == nil {
					_, _ = io.Copy(conn, conn) // ends with the connection
				}
			})
		}
	})
	stop := sync.OnceFunc(func() {
		listener.Close()
		running.Wait()
	})
	t.Cleanup(stop)
	return server{address: listener.Addr().String(), stop: stop}
}
