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
	onEvery(t, []testCase{
		{"lists have what the filter selects, page by page", 100_000, listsAreSelected},
		{"lists of all accounts have what the filter selects, page by page", 100_000, listsOfAllAccounts},
		{"named messages are listed in the order of their names", 10, namedMessages},
	})
}

// listsAreSelected compares lists with a look at every message.
func listsAreSelected(p fixture) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var ms []Message
	for range 2500 {
		m := p.message(1 + rnd.IntN(2))
		m.Originator, m.Destination = fmt.Sprintf("S%d", rnd.IntN(3)), fmt.Sprintf("44770%d", rnd.IntN(400))
		if rnd.IntN(50) == 0 {
			m.Destination = m.Originator
		}
		ms = append(ms, m)
	}
	p.save(ms...)
	p.settleAtRandom(rnd, ms)
	other := newMessage(2, ms[0].ID+1, 1)
	p.must(p.credit.Open(p.Context(), 2, 100, at(0)))
	_, err := p.Save(p.Context(), OrderRecords{Account: 2, Messages: []Message{other}, Now: at(0)})
	p.must(err)
	all, _, err := p.List(p.Context(), Filter{Account: 1, Limit: len(ms)})
	p.must(err)
	p.same("all", len(all), len(ms))
	for _, state := range append(States(), "") {
		for _, number := range []string{"", "S1", "447707", "S0", "none"} {
			f := Filter{Account: 1, State: state, Number: number, Limit: 1 + rnd.IntN(300)}
			if rnd.IntN(2) == 0 {
				f.Before = ms[rnd.IntN(len(ms))].ID
			}
			p.same(fmt.Sprintf("%+v", f), p.listed(f), selected(all, f))
		}
	}
}

// listsOfAllAccounts compares lists of several accounts with a look at every message.
func listsOfAllAccounts(p fixture) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var ms []Message
	accounts := []relay.AccountID{1, 2, 3}
	for _, acct := range accounts[1:] {
		p.must(p.credit.Open(p.Context(), acct, 100_000, at(0)))
	}
	for range 900 {
		m := p.message(1 + rnd.IntN(3))
		m.Account = accounts[rnd.IntN(len(accounts))]
		m.Originator, m.Destination = fmt.Sprintf("S%d", rnd.IntN(3)), fmt.Sprintf("44770%d", rnd.IntN(100))
		ms = append(ms, m)
	}
	for _, acct := range accounts {
		owned := slices.DeleteFunc(slices.Clone(ms), func(m Message) bool { return m.Account != acct })
		_, err := p.Save(p.Context(), OrderRecords{Account: acct, Messages: owned, Now: at(0)})
		p.must(err)
	}
	p.settleAtRandom(rnd, ms)
	all, _, err := p.ListNewest(p.Context(), accounts, Filter{Limit: len(ms)})
	p.must(err)
	p.same("all", len(all), len(ms))
	for _, state := range append(States(), "") {
		for _, number := range []string{"", "S1", "447707", "none"} {
			f := Filter{State: state, Number: number, Limit: 1 + rnd.IntN(300)}
			var got []ID
			for {
				page, next, err := p.ListNewest(p.Context(), accounts, f)
				p.must(err)
				for _, m := range page {
					got = append(got, m.ID)
				}
				if f.Before = next; next == 0 {
					break
				}
			}
			f.Before = 0
			p.same(fmt.Sprintf("%+v", f), got, selected(all, f))
		}
	}
	none, next, err := p.ListNewest(p.Context(), nil, Filter{Limit: 10})
	p.must(err)
	p.same("of no account", len(none)+int(next), 0)
}

// settleAtRandom gives parts states, most of them accepted.
func (p fixture) settleAtRandom(rnd *rand.Rand, ms []Message) {
	p.Helper()
	var starts []Beginning
	var first, then []Outcome
	for _, m := range ms {
		for n := range m.Parts {
			ref := PartRef{Ref: m.Ref(), Part: n}
			if rnd.IntN(20) > 0 {
				starts = append(starts, Beginning{Ref: m.Ref(), Parts: []int{n}, Carrier: "c", Now: at(1), Until: at(9)})
			}
			first = append(first, Outcome{PartRef: ref, State: Accepted, At: at(2)})
			then = append(then, Outcome{PartRef: ref, State: States()[rnd.IntN(8)], At: at(3)})
		}
	}
	_, err := p.Begin(p.Context(), starts)
	p.must(err)
	_, err = p.Settle(p.Context(), then[:len(then)/8])
	p.must(err)
	_, err = p.Settle(p.Context(), first[:len(first)-10])
	p.must(err)
	_, err = p.Settle(p.Context(), then[len(then)/2:len(then)/2+100])
	p.must(err)
	for _, m := range ms[len(ms)-20:] {
		_ = p.Delete(p.Context(), 1, m.ID, at(4)) // those that are pending
	}
}

// listed reads all pages.
func (p fixture) listed(f Filter) (ids []ID) {
	p.Helper()
	for {
		list, next, err := p.List(p.Context(), f)
		p.must(err)
		for _, m := range list {
			ids = append(ids, m.ID)
		}
		if next == 0 {
			return ids
		}
		p.same("length of a page", len(list), f.Limit)
		f.Before = next
	}
}

func selected(all []Message, f Filter) (ids []ID) {
	for i := range all {
		if f.Selects(&all[i]) && (f.Before == 0 || all[i].ID < f.Before) {
			ids = append(ids, all[i].ID)
		}
	}
	return ids
}

func namedMessages(p fixture) {
	one, two, three := p.message(1), p.message(1), p.message(1)
	two.Originator = "other"
	p.save(one, two, three)
	f := Filter{Account: 1, IDs: []ID{three.ID, 999, one.ID, two.ID}, Limit: 1}
	for number, want := range map[string][]ID{"": {three.ID, one.ID, two.ID}, "Shop": {three.ID, one.ID}, "other": {two.ID}} {
		f.Number = number
		p.same("named "+number, p.listed(f), want)
	}
	f.Account = 2
	p.same("of another account", p.listed(f), []ID{})
}

// An index is only used if the statement has its condition word for word.
func TestEachStateHasAnIndex(t *testing.T) {
	p := newFixture(t, "", 0)
	for _, state := range States() {
		f := Filter{Account: 1, State: state}
		plan, err := db.List(t.Context(), p.db, "test", "EXPLAIN QUERY PLAN "+f.pageStatement(selectAll, selectInState, selectByNumber), func(v *string) []any {
			var skip any
			return []any{&skip, &skip, &skip, v}
		}, int64(1), int64(math.MaxInt64), int64(50))
		p.must(err)
		index := "INDEX message_" + string(state) + " "
		if state == Pending || state == Sending {
			index = "INDEX message_waiting "
		}
		if !slices.ContainsFunc(plan, func(step string) bool { return strings.Contains(step, index) }) {
			t.Errorf("%s: %q", state, plan)
		}
	}
}
