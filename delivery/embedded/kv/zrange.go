package kv

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// scoreRange is ZRANGEBYSCORE, which a queue asks for what is due. miniredis
// sorts the whole set for it; here only what is in the range is sorted.
type scoreRange struct {
	key           string
	from, to      scoreBound
	offset, count int
	withScores    bool
}

type scoreBound struct {
	score    float64
	excluded bool
}

type scored struct {
	member string
	score  float64
}

// rangeByScore leaves to miniredis what is not of the usual form, errors above
// all.
func (s *Server) rangeByScore(p *server.Peer, args []string) {
	r, ok := parseScoreRange(args)
	set, isSet := (*s.tables.zsets)[r.key]
	if !ok || !isSet {
		s.dispatch(p, append([]string{"ZRANGEBYSCORE"}, args...))
		return
	}
	found := r.find(set)
	p.Block(func(w *server.Writer) {
		if !r.withScores {
			w.WriteLen(len(found))
		} else {
			w.WriteLen(2 * len(found))
		}
		for _, e := range found {
			w.WriteBulk(e.member)
			if r.withScores {
				w.WriteFloat(e.score)
			}
		}
	})
}

func parseScoreRange(args []string) (r scoreRange, ok bool) {
	if len(args) < 3 {
		return r, false
	}
	r.key, r.count = args[0], -1
	from, to := r.from.parse(args[1]), r.to.parse(args[2])
	rest := args[3:]
	if len(rest) > 0 && strings.EqualFold(rest[0], "WITHSCORES") {
		r.withScores, rest = true, rest[1:]
	}
	if len(rest) == 3 && strings.EqualFold(rest[0], "LIMIT") {
		var err1, err2 error
		r.offset, err1 = strconv.Atoi(rest[1])
		r.count, err2 = strconv.Atoi(rest[2])
		ok = err1 == nil && err2 == nil && r.offset >= 0
		rest = nil
	} else {
		ok = len(rest) == 0
	}
	return r, ok && from && to
}

func (b *scoreBound) parse(s string) bool {
	s, b.excluded = strings.CutPrefix(s, "(")
	score, err := strconv.ParseFloat(s, 64)
	b.score = score
	return err == nil && score == score
}

func (r scoreRange) holds(score float64) bool {
	return (score > r.from.score || score == r.from.score && !r.from.excluded) &&
		(score < r.to.score || score == r.to.score && !r.to.excluded)
}

func (r scoreRange) find(set map[string]float64) []scored {
	var found []scored
	for member, score := range set {
		if r.holds(score) {
			found = append(found, scored{member, score})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.member, b.member))
	})
	found = found[min(r.offset, len(found)):]
	if r.count >= 0 {
		found = found[:min(r.count, len(found))]
	}
	return found
}
