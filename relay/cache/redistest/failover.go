package redistest

import (
	"context"
	"net"
	"testing"
)

// master is the server that the Sentinel calls the master, nil if it names none
// of ours.
func (s *Sentinels) master(ctx context.Context) *Server {
	at, err := s.watcher.GetMasterAddrByName(ctx, "mymaster").Result()
	if err != nil || len(at) != 2 {
		return nil
	}
	for _, one := range []*Server{s.Master, s.Replica} {
		if one.Addr == net.JoinHostPort(at[0], at[1]) {
			return one
		}
	}
	return nil
}

// Switch has the two servers change their roles, as an operator does (SENTINEL
// FAILOVER), and waits until the other is the master.
func (s *Sentinels) Switch(t testing.TB) {
	t.Helper()
	before := s.followed(t)
	Await(t, startTime, "sentinel begins the failover", func(ctx context.Context) bool {
		return s.watcher.Failover(ctx, "mymaster").Err() == nil
	})
	s.awaitPromotion(t, before)
}

// Crash kills the server that is the master, waits until the Sentinel has promoted
// the other, and starts the killed one again.
func (s *Sentinels) Crash(t testing.TB) {
	t.Helper()
	before := s.followed(t)
	before.Stop()
	s.awaitPromotion(t, before)
	before.Restart()
}

// followed waits until the master is followed by the other server, as far as the
// Sentinel knows, and returns it.
func (s *Sentinels) followed(t testing.TB) (master *Server) {
	t.Helper()
	Await(t, 2*startTime, "the master is followed", func(ctx context.Context) bool {
		master = s.master(ctx)
		all, err := s.watcher.Replicas(ctx, "mymaster").Result()
		return master != nil && err == nil && len(all) == 1 && all[0]["flags"] == "slave" && all[0]["master-link-status"] == "ok"
	})
	return master
}

func (s *Sentinels) awaitPromotion(t testing.TB, before *Server) {
	t.Helper()
	Await(t, 2*startTime, "sentinel promotes the other server", func(ctx context.Context) bool {
		now := s.master(ctx)
		return now != nil && now != before
	})
}
