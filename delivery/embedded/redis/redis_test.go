package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/delivery/embedded/redis"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/relaytest"
)

func open(t *testing.T, o redis.Options) *cache.DB {
	t.Helper()
	server, err := redis.Start(o)
	relaytest.NoError(t, err)
	db, err := cache.Open(cache.Options{Dialer: server.Dial})
	relaytest.NoError(t, err)
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), server.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		if _, err := server.Dial(context.Background(), "", ""); err == nil {
			t.Error("a closed server takes connections")
		}
	})
	return db
}

func client(t *testing.T, db *cache.DB) goredis.UniversalClient {
	t.Helper()
	c := db.MakeRedisClient().(goredis.UniversalClient)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestItPassesTheCheckOfAServer(t *testing.T) {
	db := open(t, redis.Options{})
	if err := errors.Join(db.Ping(t.Context()), db.Check(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestTheQueueRunsOnIt(t *testing.T) {
	db := open(t, redis.Options{})
	const n = 50
	run := runs(t, db, n)
	for i := range n {
		enqueue(t, db, i)
	}
	run(30 * time.Second)
	inspector := asynq.NewInspector(db)
	defer inspector.Close()
	redistest.Await(t, "the queue is empty", func(context.Context) bool {
		q, err := inspector.GetQueueInfo("default")
		return err == nil && q.Size == 0
	})
}

// runs runs the queue; the result waits until n tasks have run, every other one
// twice.
func runs(t *testing.T, db *cache.DB, n int) func(time.Duration) {
	t.Helper()
	var mu sync.Mutex
	seen, done := map[string]int{}, make(chan struct{})
	left := n + n/2
	srv := asynq.NewServer(db, asynq.Config{
		Concurrency: 4, TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	err := srv.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		p := string(task.Payload())
		seen[p]++
		if left--; left == 0 {
			close(done)
		}
		if seen[p] == 1 && p[0]%2 == 0 {
			return errors.New("again")
		}
		return nil
	}))
	relaytest.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	return func(most time.Duration) {
		t.Helper()
		select {
		case <-done:
		case <-time.After(most):
			t.Fatalf("%d runs are missing", left)
		}
	}
}

func enqueue(t *testing.T, db *cache.DB, i int) {
	t.Helper()
	q := asynq.NewClient(db)
	defer q.Close()
	task, id := asynq.NewTask("t", []byte{byte(i)}), asynq.TaskID(fmt.Sprint("id", i))
	if _, err := q.Enqueue(task, id, asynq.MaxRetry(9), asynq.ProcessIn(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Enqueue(task, id); !errors.Is(err, asynq.ErrTaskIDConflict) {
		t.Fatalf("enqueued twice: %v", err)
	}
}

func TestKeysExpire(t *testing.T) {
	c := client(t, open(t, redis.Options{}))
	_, err := c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
		p.Set(t.Context(), "short", "1", 500*time.Millisecond)
		p.HSet(t.Context(), "hash", "a", "1")
		p.ExpireAt(t.Context(), "hash", time.Now().Add(time.Second))
		p.Set(t.Context(), "long", "1", time.Hour)
		return nil
	})
	relaytest.NoError(t, err)
	redistest.Await(t, "keys expire", func(ctx context.Context) bool {
		n, err := c.Exists(ctx, "short", "hash").Result()
		return err == nil && n == 0
	})
	if left, err := c.TTL(t.Context(), "long").Result(); err != nil || left <= 50*time.Minute || left > time.Hour {
		t.Errorf("the other ends after %s, %v", left, err)
	}
}

// A pipeline whose requests and answers are larger than any buffer between.
func TestPipelinesOfAnySize(t *testing.T) {
	c := client(t, open(t, redis.Options{}))
	text := strings.Repeat("x", 1000)
	cmds, err := c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
		for i := range 5000 {
			p.Set(t.Context(), fmt.Sprint("k", i), text, 0)
			p.Get(t.Context(), fmt.Sprint("k", i))
		}
		return nil
	})
	if err != nil || cmds[9999].(*goredis.StringCmd).Val() != text {
		t.Fatal(err)
	}
}

func TestWaitingScriptsAndMessages(t *testing.T) {
	c := client(t, open(t, redis.Options{}))
	ctx := t.Context()
	sub := c.Subscribe(ctx, "news")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	popped := make(chan []string, 1)
	go func() {
		got, _ := c.BLPop(ctx, 5*time.Second, "list").Result()
		popped <- got
	}()
	script := goredis.NewScript(`redis.call('PUBLISH', 'news', ARGV[1]) return redis.call('RPUSH', KEYS[1], ARGV[1])`)
	relaytest.NoError(t, script.Run(ctx, c, []string{"list"}, "hello").Err())
	if got := <-popped; len(got) != 2 || got[1] != "hello" {
		t.Errorf("popped %q", got)
	}
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
		t.Errorf("message %v, %v", m, err)
	}
	if _, err := c.BLPop(ctx, 50*time.Millisecond, "list").Result(); !errors.Is(err, goredis.Nil) {
		t.Errorf("an empty list: %v", err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	c := client(t, open(t, redis.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.BLPop(ctx, time.Minute, "list").Err(); !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(fmt.Sprint(err), "timeout") {
		t.Errorf("%v", err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

// What miniredis never forgets has an end: it begins anew, and clients go on.
func TestItBeginsAnewAfterManyTasks(t *testing.T) {
	db := open(t, redis.Options{MaxTasks: 3})
	c := client(t, db)
	relaytest.NoError(t, c.Set(t.Context(), "kept", "1", 0).Err())
	for i := range 3 {
		enqueue(t, db, i)
	}
	redistest.Await(t, "it is empty", func(ctx context.Context) bool {
		n, err := c.Exists(ctx, "kept").Result()
		return err == nil && n == 0
	})
	if err := errors.Join(c.Ping(t.Context()).Err(), db.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	enqueue(t, db, 0)
}

// TestScriptsThatFindNoTasksAreAnsweredWithoutLua: the server does not know the scripts by
// these hashes, so an answer is one without Lua.
func TestScriptsThatFindNoTasksAreAnsweredWithoutLua(t *testing.T) {
	c := client(t, open(t, redis.Options{}))
	take := func() error {
		return c.EvalSha(t.Context(), "dequeue", []string{"asynq:{q}:pending", "asynq:{q}:paused", "asynq:{q}:active", "asynq:{q}:lease"}).Err()
	}
	move := func(set string) (any, error) {
		return c.EvalSha(t.Context(), "forward", []string{"asynq:{q}:" + set, "asynq:{q}:pending"}).Result()
	}
	relaytest.Equal(t, "the answer of an empty queue", fmt.Sprint(take()), "redis: nil")
	for _, set := range []string{"scheduled", "retry"} {
		relaytest.Equal(t, "the number of tasks that are due in "+set, relaytest.Must(move(set))(t), any(int64(0)))
		relaytest.NoError(t, c.ZAdd(t.Context(), "asynq:{q}:"+set, goredis.Z{Member: "a"}).Err())
		if _, err := move(set); err == nil {
			t.Errorf("a task in %s was not looked at by the script", set)
		}
	}
	relaytest.NoError(t, c.RPush(t.Context(), "asynq:{q}:pending", "a").Err())
	if err := take(); err == nil || errors.Is(err, goredis.Nil) {
		t.Errorf("a pending task was not looked at by the script: %v", err)
	}
}
