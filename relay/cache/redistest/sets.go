package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/porttest"
)

// Cluster is three masters that share the slots.
type Cluster struct {
	// URL is redis+cluster://… with all three.
	URL   string
	Nodes []*Server
	bus   []int // the nodes' ports for one another
}

// StartCluster starts a cluster and waits until all its nodes agree.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range 3 {
		// By default the bus has the node's port plus 10,000, which may be in use.
		c.bus = append(c.bus, porttest.Free(t))
		c.Nodes = append(c.Nodes, Start(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(c.bus[i])))
	}
	var addrs []string
	for i, n := range c.Nodes {
		addrs = append(addrs, n.Addr)
		c.join(t, i)
	}
	c.URL = "redis+cluster://" + strings.Join(addrs, ",")
	for _, n := range c.Nodes {
		rdb := n.Client()
		defer rdb.Close()
		Await(t, "cluster agrees", func(ctx context.Context) bool {
			info, err := rdb.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return c
}

// join gives a node its third of the slots and introduces it to the first.
func (c *Cluster) join(t testing.TB, i int) {
	t.Helper()
	const slots = 16384
	ctx, rdb := context.Background(), c.Nodes[i].Client()
	defer rdb.Close()
	host, port, _ := net.SplitHostPort(c.Nodes[0].Addr)
	if err := rdb.ClusterAddSlotsRange(ctx, i*slots/3, (i+1)*slots/3-1).Err(); err != nil {
		t.Fatalf("cluster: slots: %v", err)
	}
	if err := rdb.Do(ctx, "cluster", "meet", host, port, c.bus[0]).Err(); err != nil {
		t.Fatalf("cluster: meet: %v", err)
	}
}

// Sentinels is a master with a replica, watched by a Sentinel.
type Sentinels struct {
	// URL is redis+sentinel://…/mymaster.
	URL     string
	Master  *Server
	Replica *Server
	watcher *redis.SentinelClient
}

// StartSentinels starts a master, a replica and a Sentinel, and waits until the
// Sentinel knows both.
func StartSentinels(t testing.TB) *Sentinels {
	t.Helper()
	binary(t, "redis-sentinel")
	s := &Sentinels{Master: Start(t)}
	host, port, _ := net.SplitHostPort(s.Master.Addr)
	s.Replica = Start(t, "--replicaof", host+" "+port)
	addr := s.sentinel(t, host, port)
	s.URL = "redis+sentinel://" + addr + "/mymaster"
	s.watcher = redis.NewSentinelClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = s.watcher.Close() })
	Await(t, "sentinel knows the replica", func(ctx context.Context) bool {
		replicas, err := s.watcher.Replicas(ctx, "mymaster").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	return s
}

func (s *Sentinels) sentinel(t testing.TB, host, port string) string {
	t.Helper()
	own := porttest.Free(t)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor mymaster %s %s 1\n"+
		"sentinel down-after-milliseconds mymaster 500\nsentinel failover-timeout mymaster 2000\n", own, host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatalf("sentinel: %v", err)
	}
	cmd := exec.Command("redis-sentinel", file)
	if err := cmd.Start(); err != nil {
		t.Fatalf("sentinel: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(own))
}

// Failover kills the master and waits until the Sentinel has made the replica
// the master.
func (s *Sentinels) Failover(t testing.TB) {
	t.Helper()
	s.Master.Stop()
	s.awaitPromotion(t, s.Master)
}

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
	Await(t, "sentinel begins the failover", func(ctx context.Context) bool {
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
	Await(t, "the master is followed", func(ctx context.Context) bool {
		master = s.master(ctx)
		all, err := s.watcher.Replicas(ctx, "mymaster").Result()
		return master != nil && err == nil && len(all) == 1 && all[0]["flags"] == "slave" && all[0]["master-link-status"] == "ok"
	})
	return master
}

func (s *Sentinels) awaitPromotion(t testing.TB, before *Server) {
	t.Helper()
	Await(t, "sentinel promotes the other server", func(ctx context.Context) bool {
		now := s.master(ctx)
		return now != nil && now != before
	})
}
