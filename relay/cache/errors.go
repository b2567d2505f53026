package cache

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
)

// wrap names the object of a call that failed, if noun is not empty, and gives
// the error its kind: no connection, no answer in time, a server that refuses
// the login and one that cannot take writes now are Unavailable; all else is
// unexpected. It returns nil for nil.
func wrap(noun string, err error) error {
	if err == nil {
		return nil
	}
	if noun != "" {
		noun += ": "
	}
	if unavailable(err) {
		return relay.Errorf(relay.KindUnavailable, "%sRedis unavailable: %s%w", noun, advice(err), err)
	}
	return relay.Errorf(relay.KindOf(err), "%s%w", noun, err)
}

// unavailable reports whether the back end is down or full, as opposed to
// having refused what was asked.
func unavailable(err error) bool {
	// The operator corrects a missing or wrong password and the rights of a user.
	return disconnected(err) || overloaded(err) || redis.IsAuthError(err) || redis.IsPermissionError(err)
}

// advice adds the remedy to a server error that does not name it.
func advice(err error) string {
	switch {
	case redis.IsAuthError(err):
		return "it asks for a password, or refused the user or password of redis.url: "
	case redis.IsPermissionError(err):
		return "the user of redis.url lacks a right, it needs all commands on all keys and channels: "
	case redis.IsReadOnlyError(err):
		return "it is a read-only replica, redis.url must name the master or its Sentinels: "
	case redis.IsLoadingError(err):
		return "it is still loading its data: "
	case redis.IsOOMError(err):
		return "out of memory, raise its maxmemory: "
	}
	return ""
}

func disconnected(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	for _, gone := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded,
		context.DeadlineExceeded, context.Canceled, redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
	} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// overloaded covers the answers of a server that is starting, failing over, out of
// memory or out of connections, or that cannot save its snapshot (MISCONF), and
// Sentinels that have no master or cannot be reached.
func overloaded(err error) bool {
	return redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) ||
		redis.IsOOMError(err) || redis.IsNoReplicasError(err) || redis.HasErrorPrefix(err, "MISCONF") ||
		err.Error() == "redis: all sentinels specified in configuration are unreachable"
}
