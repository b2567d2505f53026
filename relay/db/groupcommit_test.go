package db_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

// Requests that arrive while a transaction runs share the next transaction, up to its maximum
// size. Requests with other keys do not wait.
func TestGroupCommit(t *testing.T) { synctest.Test(t, testGroupCommit) }

func testGroupCommit(t *testing.T) {
	began, resume := make(chan []int), make(chan struct{})
	g := &db.GroupCommit[string, int, string]{
		MaxSize: 10, Size: func(n int) int { return n },
		Do: func(_ context.Context, key string, inputs []int) []db.Answer[string] {
			began <- inputs
			<-resume
			answers := make([]db.Answer[string], len(inputs))
			for i, input := range inputs {
				answers[i] = db.Answer[string]{Value: fmt.Sprint(key, input)}
				if input == 3 {
					answers[i].Err = context.Canceled
				}
			}
			return answers
		},
	}
	var requests sync.WaitGroup
	request := func(key string, n int, fails bool) {
		requests.Go(func() {
			got, err := g.Commit(t.Context(), key, n)
			if got != fmt.Sprint(key, n) || (err != nil) != fails {
				t.Errorf("answer to input %s %d = %q, error = %v, want %s%d, failure %t", key, n, got, err, key, n, fails)
			}
		})
	}
	wantInputs := func(name string, got []int, want ...int) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("inputs of %s transaction = %v, want %v", name, got, want)
		}
	}
	request("a", 1, false)
	wantInputs("the first", <-began, 1)
	request("b", 2, false)
	wantInputs("another key's", <-began, 2)
	for _, n := range []int{3, 4, 5, 20} {
		request("a", n, n == 3)
		synctest.Wait() // the requests queue in this order
	}
	resume <- struct{}{}
	resume <- struct{}{}
	wantInputs("the second", <-began, 3, 4)
	resume <- struct{}{}
	wantInputs("the third", <-began, 5)
	resume <- struct{}{}
	wantInputs("the oversized", <-began, 20)
	resume <- struct{}{}
	requests.Wait()
	request("a", 6, false)
	wantInputs("a later", <-began, 6)
	resume <- struct{}{}
	requests.Wait()
}

// A panic of a transaction reaches the callers as an error.
func TestGroupCommitReturnsAnErrorAfterAPanic(t *testing.T) {
	g := &db.GroupCommit[int, int, int]{
		MaxSize: 10, Size: func(n int) int { return n },
		Do: func(context.Context, int, []int) []db.Answer[int] { panic("broken") },
	}
	for range 2 {
		_, err := g.Commit(t.Context(), 1, 1)
		if relay.KindOf(err) != relay.KindUnexpected || !strings.Contains(err.Error(), "broken") {
			t.Errorf("error = %v, want the panic", err)
		}
	}
}

// A waiting request is dropped when its context ends. The other requests are run.
func TestGroupCommitDropsCanceledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, resume := make(chan []int), make(chan struct{})
		g := &db.GroupCommit[int, int, int]{
			MaxSize: 10, Size: func(int) int { return 1 },
			Do: func(_ context.Context, _ int, inputs []int) []db.Answer[int] {
				began <- inputs
				<-resume
				return make([]db.Answer[int], len(inputs))
			},
		}
		errs := make(map[int]chan error)
		submit := func(ctx context.Context, n int) {
			errs[n] = make(chan error, 1)
			go func(done chan<- error) {
				_, err := g.Commit(ctx, 1, n)
				done <- err
			}(errs[n])
			synctest.Wait()
		}
		canceledCtx, cancel := context.WithCancel(t.Context())
		submit(canceledCtx, 1)
		relaytest.Equal(t, "the first transaction", <-began, []int{1})
		submit(canceledCtx, 2)
		submit(t.Context(), 3)
		cancel()
		if err := <-errs[2]; relay.KindOf(err) != relay.KindUnavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("error of a request canceled while waiting = %v, want canceled", err)
		}
		resume <- struct{}{}
		relaytest.NoError(t, <-errs[1]) // the transaction had begun
		relaytest.Equal(t, "the second transaction", <-began, []int{3})
		resume <- struct{}{}
		relaytest.NoError(t, <-errs[3])
		submit(canceledCtx, 4)
		if err := <-errs[4]; !errors.Is(err, context.Canceled) {
			t.Errorf("error of a request with a canceled context = %v, want canceled", err)
		}
		submit(t.Context(), 5)
		relaytest.Equal(t, "the third transaction", <-began, []int{5})
		resume <- struct{}{}
		relaytest.NoError(t, <-errs[5])
	})
}
