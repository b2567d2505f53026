// Package codec runs JavaScript codecs in worker processes.
//
// Customers write codecs, and the interpreter can bound neither their memory nor the time of
// its built-in functions. So the gateway never runs codecs itself: a Pool starts at most two
// children of the same program (penstock codec-worker), sends them frames over a pipe and
// reads the results. A child that exceeds a limit ends, and the Pool starts another child.
//
//	limit                      enforced by         consequence
//	2 s of CPU to compile      the worker          it exits
//	100 ms of CPU for a call   the worker          the call is interrupted; the worker exits after its response
//	200 ms of CPU for a call   the worker          it exits: a built-in function did not return
//	160 MiB of Go memory       the worker          it exits
//	192 MiB of data growth     the kernel (Linux)  an allocation fails, and the worker exits
//	30 s for a request         the parent          it kills the worker
//
// The CPU time is measured in the worker, so that no codec fails because the machine is busy.
// A worker responds after 5 s with the results so far, so that a batch of slow frames does not
// reach the limit of 30 s. The Pool sends the remaining frames in another request.
//
// If a worker ends during a request for several frames, the Pool sends the frames again in
// requests of one, two, four and so on, so that only the frame that exceeds the limit is
// refused. At most one worker runs codecs of the same account.
//
// Requests and responses are JSON after a length of four octets, big-endian. The parent
// checks every length, because the child is not trusted. A request identifies the codec by the
// hash of its source, and includes the source only if the worker does not have it.
package codec
