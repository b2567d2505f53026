package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CallRedis sends a command to a server with redis-cli and returns the answer.
func CallRedis(ctx context.Context, addr string, command ...string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	output, err := exec.CommandContext(ctx, "redis-cli", append([]string{"-e", "-h", host, "-p", port}, command...)...).CombinedOutput()
	reply := strings.TrimSpace(string(output))
	if err != nil {
		return "", fmt.Errorf("redis-cli %s: %w: %s", strings.Join(command, " "), err, reply)
	}
	return reply, nil
}

// Sentinels is a Redis master and its replica, with a Sentinel that monitors them.
type Sentinels struct {
	Sentinel *Server
	Servers  []*Server
}

// sentinelMaster is the name of the master in the Sentinel.
const sentinelMaster = "mymaster"

// Sentinels starts a master, a replica and a Sentinel, with their data in directories below dir, and
// waits for Roles.
func (r *Run) Sentinels(ctx context.Context, dir string) (*Sentinels, error) {
	s := &Sentinels{}
	for _, args := range [][]string{nil, {"--replicaof", "127.0.0.1"}} {
		if args != nil {
			_, port, _ := net.SplitHostPort(s.Servers[0].Addr)
			args[1] += " " + port
		}
		server, err := r.redisBelow(ctx, dir, args...)
		if err != nil {
			return nil, err
		}
		s.Servers = append(s.Servers, server)
	}
	host, port, _ := net.SplitHostPort(s.Servers[0].Addr)
	s.Sentinel = &Server{Addr: FreeAddr()}
	_, ownPort, _ := net.SplitHostPort(s.Sentinel.Addr)
	file := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor %s %s %s 1\n"+
		"sentinel down-after-milliseconds %[2]s 500\nsentinel failover-timeout %[2]s 2000\n", ownPort, sentinelMaster, host, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s.Sentinel.launch = func(ctx context.Context) (*exec.Cmd, error) {
		return r.Start(ctx, "sentinel", nil, "redis-sentinel", file)
	}
	s.Sentinel.ready = func(ctx context.Context) error { return Reachable(ctx, s.Sentinel.Addr) }
	if err := s.Sentinel.Start(ctx); err != nil {
		return nil, err
	}
	_, err := s.Roles(ctx)
	return s, err
}

// redisBelow starts a Redis without persistence, in a new directory below dir.
func (r *Run) redisBelow(ctx context.Context, dir string, args ...string) (*Server, error) {
	redisDir, err := os.MkdirTemp(dir, "redis")
	if err != nil {
		return nil, err
	}
	return r.Redis(ctx, redisDir, append([]string{"--appendonly", "no"}, args...)...)
}

// URL returns the Redis URL for a gateway.
func (s *Sentinels) URL() string { return "redis+sentinel://" + s.Sentinel.Addr + "/" + sentinelMaster }

// Roles waits until the Sentinel reports that the replica is in sync with the master, and returns a
// map from the master to the replica. The wait can be long: a Sentinel whose timer was late does
// nothing for 30 s (TILT mode), which happens repeatedly on a busy machine.
func (s *Sentinels) Roles(ctx context.Context) (replicas map[*Server]*Server, err error) {
	return replicas, Until(ctx, StartTime, "the replica to be in sync with the Sentinel's master", func() bool {
		master := s.master(ctx)
		reply, err := CallRedis(ctx, s.Sentinel.Addr, "sentinel", "replicas", sentinelMaster)
		for _, otherServer := range s.Servers {
			if master != nil && otherServer != master {
				replicas = map[*Server]*Server{master: otherServer}
			}
		}
		return master != nil && err == nil && strings.Contains(reply, "\nflags\nslave\n") && strings.Contains(reply, "\nmaster-link-status\nok\n")
	})
}

// master returns the server that the Sentinel reports as the master, or nil.
func (s *Sentinels) master(ctx context.Context) *Server {
	reply, err := CallRedis(ctx, s.Sentinel.Addr, "sentinel", "get-master-addr-by-name", sentinelMaster)
	for _, server := range s.Servers {
		if err == nil && strings.ReplaceAll(reply, "\n", ":") == server.Addr {
			return server
		}
	}
	return nil
}

// Promoted waits until the Sentinel reports replica as the master.
func (s *Sentinels) Promoted(ctx context.Context, replica *Server) error {
	return Until(ctx, StartTime, "the Sentinel to promote the other server", func() bool { return s.master(ctx) == replica })
}

// Switch makes replica the master, as an operator does.
func (s *Sentinels) Switch(ctx context.Context, replica *Server) error {
	if err := Until(ctx, StartTime, "the Sentinel to begin the failover", func() bool {
		_, err := CallRedis(ctx, s.Sentinel.Addr, "sentinel", "failover", sentinelMaster)
		return err == nil
	}); err != nil {
		return err
	}
	return s.Promoted(ctx, replica)
}

// RedisCluster is a Redis Cluster of three masters with a replica each.
type RedisCluster struct{ Nodes []*Server }

// RedisCluster starts a cluster with its data in directories below dir.
func (r *Run) RedisCluster(ctx context.Context, dir string) (*RedisCluster, error) {
	c := &RedisCluster{}
	create := []string{"--cluster-yes", "--cluster-replicas", "1", "--cluster", "create"}
	for range 6 {
		// The default port of the bus, the node's port plus 10,000, may be in use.
		_, bus, _ := net.SplitHostPort(FreeAddr())
		server, err := r.redisBelow(ctx, dir, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", bus)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, server)
		create = append(create, server.Addr+"@"+bus)
	}
	if output, err := exec.CommandContext(ctx, "redis-cli", create...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("redis-cli --cluster create: %w: %s", err, output)
	}
	_, err := c.Roles(ctx)
	return c, err
}

// URL returns the Redis URL for a gateway.
func (c *RedisCluster) URL() string {
	var addrs []string
	for _, server := range c.Nodes {
		addrs = append(addrs, server.Addr)
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}

// Roles waits until every node reports the state ok and every master has a replica that is up to
// date, and returns a map from the masters to the replicas.
func (c *RedisCluster) Roles(ctx context.Context) (replicas map[*Server]*Server, err error) {
	return replicas, Until(ctx, StartTime, "the Cluster to be complete", func() bool {
		replicas = map[*Server]*Server{}
		for _, server := range c.Nodes {
			state, err := CallRedis(ctx, server.Addr, "cluster", "info")
			if err != nil || !strings.Contains(state, "cluster_state:ok") {
				return false
			}
			info, err := CallRedis(ctx, server.Addr, "info", "replication")
			if err != nil {
				return false
			}
			if strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up") {
				replicas[c.node(infoValue(info, "master_port"))] = server
			}
		}
		return len(replicas) == len(c.Nodes)/2
	})
}

// node returns the node at a port, or nil.
func (c *RedisCluster) node(port string) *Server {
	for _, server := range c.Nodes {
		if strings.HasSuffix(server.Addr, ":"+port) {
			return server
		}
	}
	return nil
}

// infoValue returns the value of a name in the answer to INFO.
func infoValue(info, name string) string {
	_, tail, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(tail, "\n")
	return strings.TrimSpace(value)
}

// Switch makes replica a master, as an operator does.
func (c *RedisCluster) Switch(ctx context.Context, replica *Server) error {
	if reply, err := CallRedis(ctx, replica.Addr, "cluster", "failover"); err != nil || !strings.HasPrefix(reply, "OK") {
		return errors.Join(err, fmt.Errorf("cluster failover: %q", reply))
	}
	return c.Promoted(ctx, replica)
}

// Promoted waits until replica is a master, after Switch or the failure of its master.
func (c *RedisCluster) Promoted(ctx context.Context, replica *Server) error {
	return Until(ctx, StartTime, "the replica of the Cluster to be a master", func() bool {
		info, err := CallRedis(ctx, replica.Addr, "info", "replication")
		return err == nil && strings.Contains(info, "role:master")
	})
}
