package kv

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const childDir = "PENSTOCK_KV_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir, os.Getenv(childDir+"_ROUND"))
		return
	}
	os.Exit(m.Run())
}

// TestNothingAcknowledgedIsLostByKill kills a process under load, again and
// again on the same directory, and looks for everything that it had been told.
func TestNothingAcknowledgedIsLostByKill(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	for round := range rounds {
		acks := killed(t, dir, round, 300+rand.IntN(3000))
		s := open(t, dir, Options{})
		verify(t, client(t, s), acks)
		closeStore(t, s)
		if t.Failed() {
			t.Fatalf("in round %d, after %d acknowledgements", round, len(acks))
		}
	}
}

// killed runs the child until it has printed so many acknowledgements, kills it
// and returns all that it printed.
func killed(t *testing.T, dir string, round, after int) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childDir+"_ROUND="+strconv.Itoa(round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acks []string
	sc := bufio.NewScanner(out)
	for sc.Scan() {
		if acks = append(acks, sc.Text()); len(acks) == after {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if len(acks) < after {
		t.Fatalf("the child ended by itself after %d acknowledgements", len(acks))
	}
	return acks
}

// An acknowledgement is a kind, a key and a value: "min" a number that may only
// have grown, "set" a member, "task" an identifier.
func verify(t *testing.T, c *redis.Client, acks []string) {
	t.Helper()
	ctx := context.Background()
	inspect := asynq.NewInspectorFromRedisClient(c)
	for _, a := range acks {
		f := strings.Fields(a)
		if len(f) != 3 {
			continue // cut off by the kill
		}
		switch f[0] {
		case "min":
			want, _ := strconv.Atoi(f[2])
			if got, _ := c.Get(ctx, f[1]).Int(); got < want {
				t.Errorf("%s is %d, was acknowledged as %d", f[1], got, want)
			}
		case "set":
			if ok, _ := c.SIsMember(ctx, f[1], f[2]).Result(); !ok {
				t.Errorf("%s lacks %s", f[1], f[2])
			}
		case "task":
			_, err := inspect.GetTaskInfo("default", f[2])
			if done := c.Exists(ctx, "done:"+f[2]).Val(); err != nil && done == 0 {
				t.Errorf("task %s is gone: %v", f[2], err)
			}
		default:
			t.Errorf("the child said %q", a)
		}
	}
	for _, pair := range [][2]string{{"script:a", "script:b"}, {"tx:a", "tx:b"}} {
		if a, b := c.Get(ctx, pair[0]).Val(), c.Get(ctx, pair[1]).Val(); a != b {
			t.Errorf("%v are %s and %s: one without the other", pair, a, b)
		}
	}
}

// child works on the store until it is killed. It says what was acknowledged.
func child(dir, round string) {
	o := Options{CompactBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)}
	if n, _ := strconv.Atoi(round); n%2 == 1 {
		o.CompactBytes = 16 << 10 // it is compacting nearly always
	}
	s, err := Open(dir, o)
	if err != nil {
		fmt.Println("open", err)
		return
	}
	c := redis.NewClient(&redis.Options{Dialer: s.Dial, PoolSize: 20})
	var mu sync.Mutex
	say := func(kind, key string, value any, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			fmt.Println("error", kind, key, err)
			return
		}
		fmt.Println(kind, key, value)
	}
	for w := range 4 {
		go plain(c, fmt.Sprintf("%s.%d", round, w), say)
	}
	go scripts(c, say)
	go transactions(c, say)
	go reader(c, say)
	tasks(c, round, say)
}

type sayer func(kind, key string, value any, err error)

func plain(c *redis.Client, who string, say sayer) {
	ctx := context.Background()
	for i := 0; ; i++ {
		n, err := c.Incr(ctx, "plain:"+who).Result()
		say("min", "plain:"+who, n, err)
		say("set", "members", who+"/"+strconv.Itoa(i), c.SAdd(ctx, "members", who+"/"+strconv.Itoa(i)).Err())
		err = c.HSet(ctx, "h:"+who, "field", strings.Repeat("x", i%500)).Err()
		if err != nil {
			say("error", "hset", 0, err)
		}
	}
}

func scripts(c *redis.Client, say sayer) {
	script := redis.NewScript(`redis.call("INCR", "script:a") redis.call("SET", "temp", "x", "PX", 20) return redis.call("INCR", "script:b")`)
	for {
		n, err := script.Run(context.Background(), c, nil).Int()
		say("min", "script:b", n, err)
	}
}

func transactions(c *redis.Client, say sayer) {
	ctx := context.Background()
	for {
		var n *redis.IntCmd
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "tx:a")
			n = p.Incr(ctx, "tx:b")
			return nil
		})
		say("min", "tx:b", n.Val(), err)
	}
}

// reader says what it saw of others: that must not be taken back either.
func reader(c *redis.Client, say sayer) {
	for {
		n, err := c.Get(context.Background(), "script:a").Int()
		if err != redis.Nil {
			say("min", "script:a", n, err)
		}
	}
}

func tasks(c *redis.Client, round string, say sayer) {
	srv := asynq.NewServerFromRedisClient(c, asynq.Config{Concurrency: 4, TaskCheckInterval: 10 * time.Millisecond, LogLevel: asynq.FatalLevel})
	err := srv.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		return c.Set(ctx, "done:"+string(task.Payload()), 1, 0).Err()
	}))
	if err != nil {
		say("error", "asynq", 0, err)
	}
	q := asynq.NewClientFromRedisClient(c)
	for i := 0; ; i++ {
		id := round + "-" + strconv.Itoa(i)
		_, err := q.Enqueue(asynq.NewTask("t", []byte(id)), asynq.TaskID(id), asynq.MaxRetry(3))
		say("task", "id", id, err)
	}
}
