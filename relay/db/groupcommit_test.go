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

// Requests that arrive while a transaction runs share the next one, up to its maximum size.
// Keys do not wait for each other.
func TestGroupCommit(t *testing.T) { synctest.Test(t, testGroupCommit) }

func testGroupCommit(t *testing.T) {
	began, goOn := make(chan []int), make(chan struct{})
	j := &db.GroupCommit[string, int, string]{
		MaxSize: 10, Size: func(n int) int { return n },
		Do: func(_ context.Context, key string, inputs []int) []db.Answer[string] {
			began <- inputs
			<-goOn
			answers := make([]db.Answer[string], len(inputs))
			for i, q := range inputs {
				answers[i] = db.Answer[string]{Value: fmt.Sprint(key, q)}
				if q == 3 {
					answers[i].Err = context.Canceled
				}
			}
			return answers
		},
	}
	var requests sync.WaitGroup
	request := func(key string, n int, fails bool) {
		requests.Go(func() {
			got, err := j.Commit(t.Context(), key, n)
			if got != fmt.Sprint(key, n) || (err != nil) != fails {
				t.Errorf("input %s %d is answered %q, %v", key, n, got, err)
			}
		})
	}
	want := func(name string, got []int, want ...int) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s transaction has the inputs %v, want %v", name, got, want)
		}
	}
	request("a", 1, false)
	want("the first", <-began, 1)
	request("b", 2, false)
	want("another key's", <-began, 2)
	for _, n := range []int{3, 4, 5, 20} {
		request("a", n, n == 3)
		synctest.Wait() // so that the requests wait in this order
	}
	goOn <- struct{}{}
	goOn <- struct{}{}
	want("the second", <-began, 3, 4)
	goOn <- struct{}{}
	want("the third", <-began, 5)
	goOn <- struct{}{}
	want("the oversized", <-began, 20)
	goOn <- struct{}{}
	requests.Wait()
	request("a", 6, false)
	want("a later", <-began, 6)
	goOn <- struct{}{}
	requests.Wait()
}

// No caller is left waiting after a transaction panics.
func TestGroupCommitReturnsAnErrorAfterAPanic(t *testing.T) {
	j := &db.GroupCommit[int, int, int]{
		MaxSize: 10, Size: func(n int) int { return n },
		Do: func(context.Context, int, []int) []db.Answer[int] { panic("broken") },
	}
	for range 2 {
		_, err := j.Commit(t.Context(), 1, 1)
		if relay.KindOf(err) != relay.KindUnexpected || !strings.Contains(err.Error(), "broken") {
			t.Errorf("the error is %v, want the panic", err)
		}
	}
}

// A request whose context has ended is not run. The other requests are run.
func TestGroupCommitWithdrawsRequestsOfEndedContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, goOn := make(chan []int), make(chan struct{})
		j := &db.GroupCommit[int, int, int]{
			MaxSize: 10, Size: func(int) int { return 1 },
			Do: func(_ context.Context, _ int, inputs []int) []db.Answer[int] {
				began <- inputs
				<-goOn
				return make([]db.Answer[int], len(inputs))
			},
		}
		errs := make(map[int]chan error)
		submit := func(ctx context.Context, n int) {
			errs[n] = make(chan error, 1)
			go func(done chan<- error) {
				_, err := j.Commit(ctx, 1, n)
				done <- err
			}(errs[n])
			synctest.Wait()
		}
		ended, end := context.WithCancel(t.Context())
		submit(ended, 1)
		relaytest.Equal(t, "the first transaction", <-began, []int{1})
		submit(ended, 2)
		submit(t.Context(), 3)
		end()
		if err := <-errs[2]; relay.KindOf(err) != relay.KindUnavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("a request that waits when its context ends: %v", err)
		}
		goOn <- struct{}{}
		relaytest.NoError(t, <-errs[1]) // it had begun
		relaytest.Equal(t, "the second transaction", <-began, []int{3})
		goOn <- struct{}{}
		relaytest.NoError(t, <-errs[3])
		submit(ended, 4)
		if err := <-errs[4]; !errors.Is(err, context.Canceled) {
			t.Errorf("a request whose context had ended before: %v", err)
		}
		submit(t.Context(), 5)
		relaytest.Equal(t, "the transaction after that", <-began, []int{5})
		goOn <- struct{}{}
		relaytest.NoError(t, <-errs[5])
	})
}
