package kv

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// talk sends commands at once and returns the raw replies.
func talk(t *testing.T, s *Server, calls ...string) string {
	t.Helper()
	c, err := s.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out []byte
	for _, call := range append(calls, "QUIT") {
		out = append(out, encodeRequest(strings.Fields(call))...)
	}
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(got), "+OK\r\n")
}

func TestConversations(t *testing.T) {
	for _, tc := range []struct {
		name  string
		calls []string
		want  string
	}{
		{"a transaction answers as one", []string{"MULTI", "SET a 1", "INCR a", "GET a", "EXEC"}, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n:2\r\n$1\r\n2\r\n"},
		{"an error inside leaves the rest", []string{"MULTI", "SET a 1", "LPUSH a x", "INCR a", "EXEC"}, "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n-WRONGTYPE Operation against a key holding the wrong kind of value\r\n:2\r\n"},
		{"a discarded one does nothing", []string{"MULTI", "SET a 1", "DISCARD", "GET a"}, "+OK\r\n+QUEUED\r\n+OK\r\n$-1\r\n"},
		{"an empty one", []string{"MULTI", "EXEC"}, "+OK\r\n*0\r\n"},
		{"EXEC without MULTI", []string{"EXEC"}, "-ERR EXEC without MULTI\r\n"},
		{"a refused command discards it", []string{"MULTI", "SET a 1", "NOSUCH", "EXEC", "EXISTS a"}, "+OK\r\n+QUEUED\r\n-ERR unknown command 'NOSUCH'\r\n-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n"},
		{"a script inside", []string{"MULTI", "EVAL return{1,redis.call('INCR','a')} 0", "EXEC"}, "+OK\r\n+QUEUED\r\n*1\r\n*2\r\n:1\r\n:1\r\n"},
		{"a ping with words", []string{"PING hi", "ECHO ho"}, "$2\r\nhi\r\n$2\r\nho\r\n"},
		{"the other protocol", []string{"HELLO 4", "CLIENT SETINFO LIB-NAME x", "CLIENT SETNAME n", "CLIENT GETNAME"}, "-NOPROTO unsupported protocol version\r\n+OK\r\n+OK\r\n$1\r\nn\r\n"},
		{"protocol 3 answers with a map", []string{"HSET h a 1", "HELLO 3", "CONFIG GET maxmemory-policy"}, ":1\r\n%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$7\r\nmodules\r\n*0\r\n%1\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"},
		{"database 0 is the only one", []string{"SELECT 0", "SELECT 1"}, "+OK\r\n-ERR DB index is out of range: the embedded store has database 0 only\r\n"},
		{"an unknown command", []string{"NOSUCH a"}, "-ERR unknown command `NOSUCH`, with args beginning with: `a`, \r\n"},
		{"wrong arguments of a write", []string{"SET", "LMPOP", "LMPOP x", "HSET h", "DEL"}, "-ERR wrong number of arguments for 'set' command\r\n-ERR wrong number of arguments for 'lmpop' command\r\n-ERR wrong number of arguments for 'lmpop' command\r\n-ERR wrong number of arguments for 'hset' command\r\n-ERR wrong number of arguments for 'del' command\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := talk(t, open(t, t.TempDir(), Options{}), tc.calls...); got != tc.want {
				t.Fatalf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestATransactionIsOneRecord(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	talk(t, s, "MULTI", "SET a 1", "INCR b", "GET a", "EXEC")
	closeStore(t, s)
	want := [][][]string{{{"SET", "a", "1"}, {"INCR", "b"}}}
	if got := readRecords(t, dir, 1); !reflect.DeepEqual(got, want) {
		t.Fatalf("the log holds %v, want %v", got, want)
	}
}

func TestWhatIsNotTheProtocolEndsTheConnection(t *testing.T) {
	c, err := open(t, t.TempDir(), Options{}).Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "*1\r\n$4\r\nPING\r\nGET / HTTP/1.1\r\n\r\n")
	got, err := io.ReadAll(c)
	if want := "+PONG\r\n-ERR Protocol error: expected an array of bulk strings\r\n"; err != nil || string(got) != want {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestKeysExpireByTheClockAlsoAcrossARestart(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	o := Options{Now: clk.now}
	s := open(t, dir, o)
	if got, want := talk(t, s, "SET a 1 EX 10", "SET b 1 PX 10500", "SET c 1", "TTL a", "PTTL b", "TTL c", "TTL d", "PEXPIRETIME a", "EXPIRETIME a"),
		"+OK\r\n+OK\r\n+OK\r\n:10\r\n:10500\r\n:-1\r\n:-2\r\n:1904281699123\r\n:1904281699\r\n"; got != want {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	clk.add(4 * time.Second)
	if got := talk(t, s, "TTL a", "INCR a", "TTL a"); got != ":6\r\n:2\r\n:6\r\n" {
		t.Fatalf("after 4 s: %q", got)
	}
	closeStore(t, s)
	clk.add(5*time.Second + 999*time.Millisecond)
	s = open(t, dir, o)
	if got := talk(t, s, "GET a", "PTTL a"); got != "$1\r\n2\r\n:1\r\n" {
		t.Fatalf("just before its time: %q", got)
	}
	clk.add(time.Millisecond)
	if got := talk(t, s, "GET a", "EXISTS b c", "DBSIZE"); got != "$-1\r\n:2\r\n:2\r\n" {
		t.Fatalf("at its time: %q", got)
	}
	closeStore(t, s)
	records := readRecords(t, dir, 1)
	if last := records[len(records)-1]; !reflect.DeepEqual(last, [][]string{{"DEL", "a"}}) {
		t.Fatalf("the log ends with %v, want the key's deletion", last)
	}
	clk.add(-time.Hour)
	if got := talk(t, open(t, dir, o), "EXISTS a b"); got != ":1\r\n" {
		t.Fatalf("with the clock set back: %q", got)
	}
}

func TestAnIdleStoreForgetsWhatHasExpired(t *testing.T) {
	clk := newClock()
	s := open(t, t.TempDir(), Options{Now: clk.now})
	do(t, client(t, s), "SET", "a", 1, "EX", 5)
	clk.add(6 * time.Second)
	await(t, func() bool { return s.Stats().Keys == 0 })
}

// breakLog makes writes to the log fail and returns what mends it.
func breakLog(t *testing.T, s *Server, f *os.File) (mend func()) {
	t.Helper()
	s.wal.mu.Lock()
	good := s.wal.f
	s.wal.f = f
	s.wal.mu.Unlock()
	return func() {
		s.wal.mu.Lock()
		s.wal.f, s.wal.tried = good, time.Time{}
		s.wal.mu.Unlock()
		f.Close()
	}
}

func TestALogThatCannotBeWrittenAcknowledgesNothingAndRecovers(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	c := redis.NewClient(&redis.Options{Dialer: s.Dial, MaxRetries: -1})
	defer c.Close()
	do(t, c, "SET", "a", 1)
	readOnly, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	mend := breakLog(t, s, readOnly)
	if err := c.Set(t.Context(), "b", 1, 0).Err(); err == nil {
		t.Fatal("a write that is not on disk was acknowledged")
	}
	for _, call := range [][]any{{"SET", "c", 1}, {"GET", "b"}, {"PING"}} {
		if err := c.Do(t.Context(), call...).Err(); err == nil || !strings.HasPrefix(err.Error(), "MISCONF") {
			t.Fatalf("%v: got %v, want MISCONF", call, err)
		}
	}
	mend()
	do(t, c, "SET", "d", 1)
	want := stateOf(s)
	closeStore(t, s)
	sameState(t, want, stateOf(open(t, dir, Options{})))
}

func TestALogThatCannotBeSyncedIsNotWrittenAgain(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	c := redis.NewClient(&redis.Options{Dialer: s.Dial, MaxRetries: -1})
	defer c.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // takes writes, cannot sync
	if err != nil {
		t.Fatal(err)
	}
	mend := breakLog(t, s, null)
	if err := c.Set(t.Context(), "b", 1, 0).Err(); err == nil {
		t.Fatal("a write that is not on disk was acknowledged")
	}
	mend()
	if err := c.Set(t.Context(), "c", 1, 0).Err(); err == nil || !strings.Contains(err.Error(), "restart") {
		t.Fatalf("got %v, want to be told to restart", err)
	}
}

func TestCloseAnswersWhatHasArrivedAndThenNothing(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	c := client(t, s)
	do(t, c, "SET", "a", 1)
	closeStore(t, s)
	if err := c.Get(context.Background(), "a").Err(); err == nil {
		t.Fatal("a closed store answers")
	}
	if _, err := s.Dial(t.Context(), "", ""); err == nil {
		t.Fatal("a closed store takes connections")
	}
}

func TestASubscriberThatDoesNotReadIsCutOff(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	c, err := s.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write(encodeRequest([]string{"SUBSCRIBE", "ch"}))
	rc := client(t, s)
	await(t, func() bool { return rc.Publish(t.Context(), "ch", "x").Val() == 1 })
	big := strings.Repeat("x", 1024)
	for range 3 * maxPushes {
		if rc.Publish(t.Context(), "ch", big).Val() == 0 {
			return
		}
	}
	await(t, func() bool { return rc.Publish(t.Context(), "ch", big).Val() == 0 })
}

func TestAPipeIsAConnection(t *testing.T) {
	t.Run("more than the buffer goes through", func(t *testing.T) {
		a, b := newPipe()
		want := strings.Repeat("0123456789abcdef", pipeBuffer/4)
		var wg sync.WaitGroup
		wg.Go(func() { io.WriteString(a, want); a.Close() })
		got, err := io.ReadAll(bufio.NewReaderSize(b, 1000))
		wg.Wait()
		if err != nil || string(got) != want {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
	})
	t.Run("a deadline ends a read and a write", func(t *testing.T) {
		a, _ := newPipe()
		a.SetDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := a.Read(make([]byte, 1)); !os.IsTimeout(err) {
			t.Fatalf("read: %v", err)
		}
		if _, err := a.Write(make([]byte, pipeBuffer+1)); !os.IsTimeout(err) {
			t.Fatalf("write: %v", err)
		}
		a.SetDeadline(time.Time{})
		a.SetReadDeadline(time.Now().Add(-time.Second))
		ne := os.ErrDeadlineExceeded.(net.Error)
		if _, err := a.Read(make([]byte, 1)); err != ne {
			t.Fatalf("a deadline in the past: %v", err)
		}
	})
	t.Run("closing wakes both sides", func(t *testing.T) {
		a, b := newPipe()
		var wg sync.WaitGroup
		wg.Go(func() { a.Close() })
		if _, err := b.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("the other side read %v", err)
		}
		wg.Wait()
		if _, err := b.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Fatalf("the other side wrote: %v", err)
		}
		if _, err := a.Read(make([]byte, 1)); err != net.ErrClosed {
			t.Fatalf("its own side read %v", err)
		}
	})
}
