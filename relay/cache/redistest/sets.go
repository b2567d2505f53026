package redistest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/deploy/servers"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Cluster is a Redis Cluster of three masters.
type Cluster struct {
	// URL is redis+cluster://… with the three nodes.
	URL   string
	Nodes []*Server
	bus   []int // the ports of the cluster bus
}

// StartCluster starts a cluster and waits until each node knows the others.
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
		Await(t, "each node knows the cluster", func(ctx context.Context) bool {
			info, err := rdb.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return c
}

// join assigns a third of the slots to a node and connects the node to the first one.
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

// Sentinels is a master with a replica and a Sentinel, as in make chaos.
type Sentinels struct {
	// URL is redis+sentinel://…/mymaster.
	URL string
	set *servers.Sentinels
}

// StartSentinels starts a master, a replica and a Sentinel, and waits until the Sentinel knows
// both servers.
func StartSentinels(t testing.TB) *Sentinels {
	t.Helper()
	for _, program := range []string{"redis-server", "redis-sentinel", "redis-cli"} {
		requireProgram(t, program)
	}
	run := &servers.Run{Dir: t.TempDir()}
	t.Cleanup(run.Stop)
	set, err := run.Sentinels(context.Background(), run.Dir)
	relaytest.NoError(t, err)
	return &Sentinels{set.URL(), set}
}

// Failover kills the master and waits until the Sentinel has promoted the replica.
func (s *Sentinels) Failover(t testing.TB) {
	t.Helper()
	s.withRoles(t, func(ctx context.Context, master, replica *servers.Server) error {
		return errors.Join(master.Kill(ctx), s.set.Promoted(ctx, replica))
	})
}

// withRoles calls do with the master and its replica when the replica is up to date.
func (s *Sentinels) withRoles(t testing.TB, do func(ctx context.Context, master, replica *servers.Server) error) {
	t.Helper()
	replicas, err := s.set.Roles(t.Context())
	relaytest.NoError(t, err)
	for master, replica := range replicas {
		relaytest.NoError(t, do(context.Background(), master, replica))
	}
}
