package message

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

func TestList(t *testing.T) {
	onEveryEngine(t, []testCase{
		{"lists have the selected messages, page by page", 100_000, listsAreSelected},
		{"lists of all accounts have the selected messages, page by page", 100_000, listsOfAllAccounts},
		{"messages selected by id are listed in the order of the ids", 10, namedMessages},
	})
}

// listsAreSelected compares List with Filter.Selects on every message.
func listsAreSelected(f fixture) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var ms []Message
	for range 2500 {
		m := f.message(1 + rnd.IntN(2))
		m.Originator, m.Destination = fmt.Sprintf("S%d", rnd.IntN(3)), fmt.Sprintf("44770%d", rnd.IntN(400))
		if rnd.IntN(50) == 0 {
			m.Destination = m.Originator
		}
		ms = append(ms, m)
	}
	f.save(ms...)
	f.settleAtRandom(rnd, ms)
	foreign := newMessage(2, ms[0].ID+1, 1)
	f.must(f.credit.Open(f.Context(), 2, 100, timeAt(0)))
	_, err := f.Save(f.Context(), OrderRecords{Account: 2, Messages: []Message{foreign}, Now: timeAt(0)})
	f.must(err)
	allMessages, _, err := f.List(f.Context(), Filter{Account: 1, Limit: len(ms)})
	f.must(err)
	f.equal("number of messages", len(allMessages), len(ms))
	for _, state := range append(States(), "") {
		for _, number := range []string{"", "S1", "447707", "S0", "none"} {
			filter := Filter{Account: 1, State: state, Number: number, Limit: 1 + rnd.IntN(300)}
			if rnd.IntN(2) == 0 {
				filter.Before = ms[rnd.IntN(len(ms))].ID
			}
			f.equal(fmt.Sprintf("%+v", filter), f.listed(filter), selected(allMessages, filter))
		}
	}
}

// listsOfAllAccounts compares ListNewest with Filter.Selects on every message.
func listsOfAllAccounts(f fixture) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var ms []Message
	accounts := []relay.AccountID{1, 2, 3}
	for _, acct := range accounts[1:] {
		f.must(f.credit.Open(f.Context(), acct, 100_000, timeAt(0)))
	}
	for range 900 {
		m := f.message(1 + rnd.IntN(3))
		m.Account = accounts[rnd.IntN(len(accounts))]
		m.Originator, m.Destination = fmt.Sprintf("S%d", rnd.IntN(3)), fmt.Sprintf("44770%d", rnd.IntN(100))
		ms = append(ms, m)
	}
	for _, acct := range accounts {
		owned := slices.DeleteFunc(slices.Clone(ms), func(m Message) bool { return m.Account != acct })
		_, err := f.Save(f.Context(), OrderRecords{Account: acct, Messages: owned, Now: timeAt(0)})
		f.must(err)
	}
	f.settleAtRandom(rnd, ms)
	allMessages, _, err := f.ListNewest(f.Context(), accounts, Filter{Limit: len(ms)})
	f.must(err)
	f.equal("number of messages", len(allMessages), len(ms))
	for _, state := range append(States(), "") {
		for _, number := range []string{"", "S1", "447707", "none"} {
			filter := Filter{State: state, Number: number, Limit: 1 + rnd.IntN(300)}
			var got []ID
			for {
				page, cursor, err := f.ListNewest(f.Context(), accounts, filter)
				f.must(err)
				for _, m := range page {
					got = append(got, m.ID)
				}
				if filter.Before = cursor; cursor == 0 {
					break
				}
			}
			filter.Before = 0
			f.equal(fmt.Sprintf("%+v", filter), got, selected(allMessages, filter))
		}
	}
	page, cursor, err := f.ListNewest(f.Context(), nil, Filter{Limit: 10})
	f.must(err)
	f.equal("length and cursor of a list without accounts", len(page)+int(cursor), 0)
}

// settleAtRandom sets the states of parts: most become accepted.
func (f fixture) settleAtRandom(rnd *rand.Rand, ms []Message) {
	f.Helper()
	var sendingParts []SendingParts
	var accepted, randomOutcomes []Outcome
	for _, m := range ms {
		for n := range m.Parts {
			ref := PartRef{Ref: m.Ref(), Part: n}
			if rnd.IntN(20) > 0 {
				sendingParts = append(sendingParts, SendingParts{Ref: m.Ref(), Parts: []int{n}, Carrier: "c", Now: timeAt(1), LeaseEnd: timeAt(9)})
			}
			accepted = append(accepted, Outcome{PartRef: ref, State: Accepted, At: timeAt(2)})
			randomOutcomes = append(randomOutcomes, Outcome{PartRef: ref, State: States()[rnd.IntN(8)], At: timeAt(3)})
		}
	}
	_, err := f.MarkSending(f.Context(), sendingParts)
	f.must(err)
	_, err = f.Settle(f.Context(), randomOutcomes[:len(randomOutcomes)/8])
	f.must(err)
	_, err = f.Settle(f.Context(), accepted[:len(accepted)-10])
	f.must(err)
	_, err = f.Settle(f.Context(), randomOutcomes[len(randomOutcomes)/2:len(randomOutcomes)/2+100])
	f.must(err)
	for _, m := range ms[len(ms)-20:] {
		_ = f.Delete(f.Context(), 1, m.ID, timeAt(4)) // fails unless the message is pending
	}
}

// listed returns the ids on all pages.
func (f fixture) listed(filter Filter) (ids []ID) {
	f.Helper()
	for {
		list, cursor, err := f.List(f.Context(), filter)
		f.must(err)
		for _, m := range list {
			ids = append(ids, m.ID)
		}
		if cursor == 0 {
			return ids
		}
		f.equal("length of a page", len(list), filter.Limit)
		filter.Before = cursor
	}
}

func selected(messages []Message, filter Filter) (ids []ID) {
	for i := range messages {
		if filter.Selects(&messages[i]) && (filter.Before == 0 || messages[i].ID < filter.Before) {
			ids = append(ids, messages[i].ID)
		}
	}
	return ids
}

func namedMessages(f fixture) {
	first, second, third := f.message(1), f.message(1), f.message(1)
	second.Originator = "other"
	f.save(first, second, third)
	filter := Filter{Account: 1, IDs: []ID{third.ID, 999, first.ID, second.ID}, Limit: 1}
	for number, want := range map[string][]ID{"": {third.ID, first.ID, second.ID}, "Shop": {third.ID, first.ID}, "other": {second.ID}} {
		filter.Number = number
		f.equal("selected by ids and number "+number, f.listed(filter), want)
	}
	filter.Account = 2
	f.equal("messages of another account", f.listed(filter), []ID{})
}

// A partial index is only used if the statement has the condition of the index word for word.
func TestEachStateHasAnIndex(t *testing.T) {
	f := newFixture(t, "", 0)
	for _, state := range States() {
		filter := Filter{Account: 1, State: state}
		plan, err := db.List(t.Context(), f.db, "test", "EXPLAIN QUERY PLAN "+filter.pageStatement(selectAll, selectInState, selectByNumber), func(v *string) []any {
			var skip any
			return []any{&skip, &skip, &skip, v}
		}, int64(1), int64(math.MaxInt64), int64(50))
		f.must(err)
		index := "INDEX message_" + string(state) + " "
		if state == Pending || state == Sending {
			index = "INDEX message_waiting "
		}
		if !slices.ContainsFunc(plan, func(step string) bool { return strings.Contains(step, index) }) {
			t.Errorf("the plan for state %s does not use %q: %q", state, index, plan)
		}
	}
}
