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
			t.Error("a closed server accepts a connection")
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

func TestTheServerPassesTheChecksOfTheCache(t *testing.T) {
	db := open(t, redis.Options{})
	if err := errors.Join(db.Ping(t.Context()), db.Check(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestAsynqRunsTasks(t *testing.T) {
	db := open(t, redis.Options{})
	const n = 50
	awaitRuns := startQueue(t, db, n)
	for i := range n {
		enqueue(t, db, i)
	}
	awaitRuns(30 * time.Second)
	inspector := asynq.NewInspector(db)
	defer inspector.Close()
	redistest.Await(t, "the queue is empty", func(context.Context) bool {
		q, err := inspector.GetQueueInfo("default")
		return err == nil && q.Size == 0
	})
}

// startQueue starts to run tasks. Every other task fails in its first run. The returned function
// waits until the tasks have run n+n/2 times.
func startQueue(t *testing.T, db *cache.DB, n int) func(time.Duration) {
	t.Helper()
	var mu sync.Mutex
	runsByTask, done := map[string]int{}, make(chan struct{})
	remaining := n + n/2
	srv := asynq.NewServer(db, asynq.Config{
		Concurrency: 4, TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	err := srv.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		p := string(task.Payload())
		runsByTask[p]++
		if remaining--; remaining == 0 {
			close(done)
		}
		if runsByTask[p] == 1 && p[0]%2 == 0 {
			return errors.New("first run")
		}
		return nil
	}))
	relaytest.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	return func(timeout time.Duration) {
		t.Helper()
		select {
		case <-done:
		case <-time.After(timeout):
			t.Fatalf("%d runs are missing", remaining)
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
		t.Fatalf("second Enqueue: error = %v, want a task id conflict", err)
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
	if ttl, err := c.TTL(t.Context(), "long").Result(); err != nil || ttl <= 50*time.Minute || ttl > time.Hour {
		t.Errorf("TTL of the long key = %s, error %v, want about an hour", ttl, err)
	}
}

// The requests and the responses of the pipeline are larger than the buffers of a connection.
func TestALargePipelineDoesNotBlock(t *testing.T) {
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
		t.Fatalf("error = %v, want the text as the last reply", err)
	}
}

func TestBlockingPopsScriptsAndPublishing(t *testing.T) {
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
		t.Errorf("BLPOP returned %q, want hello", got)
	}
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
		t.Errorf("message = %v, error %v, want hello", m, err)
	}
	if _, err := c.BLPop(ctx, 50*time.Millisecond, "list").Result(); !errors.Is(err, goredis.Nil) {
		t.Errorf("BLPOP of an empty list: error = %v, want redis.Nil", err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	c := client(t, open(t, redis.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.BLPop(ctx, time.Minute, "list").Err(); !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(fmt.Sprint(err), "timeout") {
		t.Errorf("error = %v, want a timeout", err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

// miniredis never forgets a key name, so the server is replaced by an empty one. Clients
// reconnect.
func TestTheServerIsReplacedAfterManyTasks(t *testing.T) {
	db := open(t, redis.Options{MaxTasks: 3})
	c := client(t, db)
	relaytest.NoError(t, c.Set(t.Context(), "key", "1", 0).Err())
	for i := range 3 {
		enqueue(t, db, i)
	}
	redistest.Await(t, "the server is empty", func(ctx context.Context) bool {
		n, err := c.Exists(ctx, "key").Result()
		return err == nil && n == 0
	})
	if err := errors.Join(c.Ping(t.Context()).Err(), db.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	enqueue(t, db, 0)
}

// The server has no scripts with these hashes, so a response means that Lua was not used.
func TestScriptsThatFindNoTasksAreAnsweredWithoutLua(t *testing.T) {
	c := client(t, open(t, redis.Options{}))
	dequeue := func() error {
		return c.EvalSha(t.Context(), "dequeue", []string{"asynq:{q}:pending", "asynq:{q}:paused", "asynq:{q}:active", "asynq:{q}:lease"}).Err()
	}
	forward := func(set string) (any, error) {
		return c.EvalSha(t.Context(), "forward", []string{"asynq:{q}:" + set, "asynq:{q}:pending"}).Result()
	}
	relaytest.Equal(t, "the response of an empty queue", fmt.Sprint(dequeue()), "redis: nil")
	for _, set := range []string{"scheduled", "retry"} {
		relaytest.Equal(t, "the number of tasks that are due in "+set, relaytest.Must(forward(set))(t), any(int64(0)))
		relaytest.NoError(t, c.ZAdd(t.Context(), "asynq:{q}:"+set, goredis.Z{Member: "a"}).Err())
		if _, err := forward(set); err == nil {
			t.Errorf("the script was not run for a task in %s", set)
		}
	}
	relaytest.NoError(t, c.RPush(t.Context(), "asynq:{q}:pending", "a").Err())
	if err := dequeue(); err == nil || errors.Is(err, goredis.Nil) {
		t.Errorf("the script was not run for a pending task: error = %v", err)
	}
}
