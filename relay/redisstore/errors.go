package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
)

// wrap names what failed and gives the error its kind: redis.Nil is NotFound;
// no connection, no answer in time and a server that cannot take writes now are
// Unavailable; all else is unexpected. It returns nil for nil.
func wrap(noun string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return relay.Errorf(relay.KindNotFound, "%s: %w", noun, err)
	case unavailable(err):
		return relay.Errorf(relay.KindUnavailable, "%s: %w", noun, err)
	}
	return relay.Errorf(relay.KindOf(err), "%s: %w", noun, err)
}

// unavailable reports whether the back end is down or full, as opposed to
// having refused what was asked.
func unavailable(err error) bool {
	return disconnected(err) || overtaxed(err)
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

// overtaxed covers the answers of a server that is starting, failing over, out
// of memory or out of connections, and of a Sentinel without a master.
func overtaxed(err error) bool {
	return redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) ||
		redis.IsOOMError(err) || redis.IsNoReplicasError(err) || misconfigured(err)
}

// misconfigured is Redis that refuses writes because it cannot save its
// snapshot, and Sentinels that cannot be asked.
func misconfigured(err error) bool {
	return redis.HasErrorPrefix(err, "MISCONF") || err.Error() == "redis: all sentinels specified in configuration are unreachable"
}
