package kv

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

func TestTheQueueRunsOnIt(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	rc := client(t, s)
	q := asynq.NewClientFromRedisClient(rc)
	const n = 50
	var mu sync.Mutex
	seen := map[string]int{}
	done := make(chan struct{})
	srv := asynq.NewServerFromRedisClient(rc, asynq.Config{
		Concurrency: 4, TaskCheckInterval: 20 * time.Millisecond, DelayedTaskCheckInterval: 50 * time.Millisecond, LogLevel: asynq.FatalLevel,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	err := srv.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		seen[string(task.Payload())]++
		if seen[string(task.Payload())] == 1 && task.Payload()[0]%2 == 0 {
			return errors.New("again")
		}
		if len(seen) == n && allDone(seen) {
			select {
			case <-done:
			default:
				close(done)
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		task := asynq.NewTask("t", []byte{byte(i)})
		if _, err := q.Enqueue(task, asynq.TaskID(string(rune('A'+i))), asynq.MaxRetry(9)); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Enqueue(task, asynq.TaskID(string(rune('A'+i)))); i == 0 && err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
			t.Fatalf("the second enqueue: %v", err)
		}
	}
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("only %d tasks ran", len(seen))
	}
	srv.Shutdown()
	if _, err := asynq.NewInspectorFromRedisClient(rc).GetQueueInfo("default"); err != nil {
		t.Fatalf("inspector: %v", err)
	}
}

func allDone(seen map[string]int) bool {
	for task, runs := range seen {
		if task[0]%2 == 0 && runs < 2 {
			return false
		}
	}
	return true
}

func TestAMessageReachesItsSubscribersInOrder(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(map[int]string{2: "in protocol 2", 3: "in protocol 3"}[protocol], func(t *testing.T) {
			s := open(t, t.TempDir(), Options{})
			c := redis.NewClient(&redis.Options{Dialer: s.Dial, Protocol: protocol})
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			sub := c.Subscribe(ctx, "one", "two")
			defer sub.Close()
			for range 2 {
				if _, err := sub.Receive(ctx); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range []string{"a", "b", "c"} {
				if n, err := c.Publish(ctx, "one", m).Result(); err != nil || n != 1 {
					t.Fatalf("%d subscribers, %v; want 1", n, err)
				}
			}
			if err := c.Eval(ctx, `return redis.call("PUBLISH", "two", "d")`, nil).Err(); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"a", "b", "c", "d"} {
				if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != want {
					t.Fatalf("got %v, %v; want %s", m, err, want)
				}
			}
			if err := sub.Ping(ctx); err != nil {
				t.Fatal(err)
			}
			if err := sub.Unsubscribe(ctx, "one"); err != nil {
				t.Fatal(err)
			}
			if n := do(t, c, "PUBSUB", "NUMSUB", "two"); n == nil {
				t.Fatal("no answer")
			}
		})
	}
}
