package codec

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/script/javascript"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestMain runs a worker if the pool has started the test binary as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == WorkerCommand {
		if err := Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func newPool(t testing.TB) *Pool {
	t.Helper()
	p := New(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { relaytest.NoError(t, p.Close()) })
	return p
}

// sourceWith returns the source of a codec whose function has the body code.
func sourceWith(code string) string { return "function decodeUplink(input) {\n" + code + "\n}" }

func compile(t testing.TB, p *Pool, source string) decoders.BatchDecoder {
	t.Helper()
	d, err := p.Compile(source)
	relaytest.NoError(t, err)
	return d.(decoders.BatchDecoder)
}

// frames returns n frames with the payloads 0, 1, 2 …
func frames(n int) []*decoders.Frame {
	frames := make([]*decoders.Frame, n)
	for i := range frames {
		frames[i] = &decoders.Frame{Payload: []byte{byte(i)}, FPort: 1, HasFPort: true}
	}
	return frames
}

// summaryOf formats each result as "skipped", its error, the value of its only reading, or else the
// whole result.
func summaryOf(decoded []decoders.Decoded) string {
	var texts []string
	for _, d := range decoded {
		switch {
		case d.Skipped:
			texts = append(texts, "skipped")
		case d.Err != nil:
			texts = append(texts, d.Err.Error())
		case len(d.Readings) == 1:
			texts = append(texts, fmt.Sprint(d.Readings[0].Value))
		default:
			texts = append(texts, fmt.Sprint(d.Result))
		}
	}
	return strings.Join(texts, ", ")
}

const (
	timeReason   = "the codec did not end within 100 ms"
	memoryReason = "the codec used more than 160 MiB of memory"
)

// bombs are codecs that exceed a limit. Which limit they exceed first depends on the machine.
var bombs = []struct{ name, code string }{
	{"an endless loop", "for (;;);"},
	{"an endless loop that catches all exceptions", "for (;;) try { for (;;); } catch (e) {} finally { for (;;); }"},
	{"a string that doubles", "let s = 'xy'; for (;;) s += s"},
	{"a string doubled by join", "let s = 'xy'; for (;;) s = [s, s].join(s)"},
	{"a string doubled by replace", "let s = 'xy'; for (;;) s = s.replace(/x/g, s)"},
	{"a string repeated 2 to the 40 times", "return {data: 'x'.repeat(2 ** 40)}"},
	{"a list that doubles", "let a = [1]; for (;;) a = [...a, ...a]"},
	{"a list that grows", "let a = []; for (;;) a.push({a: {b: [1, 2, 3]}})"},
	{"join of a list with the length 4e9", "return new Array(4e9).join('x')"},
	{"indexOf on an object with the length 2 to the 53", "return [].indexOf.call({length: 2 ** 53 - 1}, 1)"},
	{"a copy of an object with the length 1e15", "return Array.from({length: 1e15})"},
	{"entries of a buffer", "return Object.entries(new Uint8Array(4194304))"},
	{"an endless number of buffers", "let a = []; for (;;) a.push(new ArrayBuffer(1e6))"},
	{"JSON of values that double at each level", "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return JSON.stringify(a)"},
	{"JSON of endless nesting", "let d = () => ({toJSON() { return {a: d()} }}); JSON.stringify(d())"},
	{"a generator that delegates to itself", "function* q() { yield* q() } return [...q()]"},
	{"a regular expression that backtracks", "return /^(?=(a+)+b)/.test('a'.repeat(60))"},
	{"matches of a long string", "return 'x'.repeat(262144).match(/x*y|x/g)"},
	{"a sort of long strings", "let a = Array(6e4).fill('a'.repeat(2e5)); a.sort(); return a"},
	{"a result with a getter that loops", "return {data: {get a() { for (;;); }}}"},
	{"a BigInt that is squared repeatedly", "let n = 3n; for (;;) n = n * n"},
	{"code in a string", "eval('for (;;);')"},
}

func exceedsLimit(err error) bool {
	if err == nil {
		return false
	}
	for _, reason := range []string{timeReason, memoryReason, "nested too deep", "too deep", "Invalid", "invalid", "RangeError", "too long", "returned more than"} {
		if strings.Contains(err.Error(), reason) {
			return true
		}
	}
	return false
}

// A frame that exceeds a limit is refused, and the other frames of the request are decoded.
func TestABombIsRefusedAlone(t *testing.T) {
	p := newPool(t)
	for _, bomb := range bombs {
		t.Run(bomb.name, func(t *testing.T) {
			d := compile(t, p, sourceWith("if (input.bytes[0] === 2) {\n"+bomb.code+"\n}\nreturn {data: {a: input.bytes[0]}}"))
			decoded, err := d.DecodeBatch(t.Context(), 1, frames(5), 0)
			relaytest.NoError(t, err)
			if !exceedsLimit(decoded[2].Err) {
				t.Errorf("result of the frame = %v, want an exceeded limit", decoded[2])
			}
			decoded = append(decoded[:2], decoded[3:]...)
			relaytest.Equal(t, "the other frames", summaryOf(decoded), "0, 1, 3, 4")
		})
	}
}

// Saving a codec runs its top-level code.
func TestABombAtTheTopLevelIsNotSaved(t *testing.T) {
	p := newPool(t)
	for _, bomb := range []struct{ name, code string }{
		{"a list that grows", "let a = []; for (;;) a.push({a: {b: [1, 2, 3]}})"},
		{"entries of a buffer", "return Object.entries(new Uint8Array(4194304))"},
		{"a generator that delegates to itself", "function* q() { yield* q() } return [...q()]"},
		{"matches of a long string", "return 'x'.repeat(262144).match(/x*y|x/g)"},
	} {
		t.Run(bomb.name, func(t *testing.T) {
			_, err := p.Compile("(function () {\n" + bomb.code + "\n})();\n" + sourceWith("return {data: {a: 1}}"))
			if !exceedsLimit(err) {
				t.Errorf("error = %v, want an exceeded limit", err)
			}
		})
	}
	decoded, err := compile(t, p, sourceWith("return {data: {a: input.bytes[0]}}")).DecodeBatch(t.Context(), 1, frames(2), 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the frames of another codec", summaryOf(decoded), "0, 1")
}

func TestSourcesThatDoNotCompileAreRefused(t *testing.T) {
	p := newPool(t)
	for _, tt := range []struct{ name, source, want string }{
		{"a syntax error", "function decodeUplink(input) {\n  return { data: };\n}", "javascript: line 2, column 18: Unexpected token }"},
		{"no function", "var a = 1;", "javascript: none of the functions decodeUplink, Decode and Decoder is defined"},
		{"a top level that never ends", "for (;;);", "javascript: line 1, column 1: the codec did not end within 100 ms"},
		{"a million brackets", strings.Repeat("(", 1<<20), "javascript: "},
		{"arrow functions in parameters of arrow functions", strings.Repeat("(a=", 3000) + "1" + strings.Repeat(")=>1", 3000), "javascript: the source was not compiled within 2 s"},
		{"a long sum", "x=" + strings.Repeat("1+", 400_000) + "1", "javascript: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.Compile(tt.source)
			killedLate := tt.want == "javascript: "+compileTimeExceeded && err != nil && err.Error() == "javascript: the codec did not end within 30s" // on a busy machine
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) && !killedLate {
				t.Errorf("error = %v, want the prefix %s", err, tt.want)
			}
		})
	}
}

// A codec of the largest permitted length is compiled.
func TestALongSourceRuns(t *testing.T) {
	var b strings.Builder
	b.WriteString("function decodeUplink(input) {\n  var d = {};\n  for (var i = 0; i < input.bytes.length; i++) switch (input.bytes[i]) {\n")
	for i := 0; b.Len() < 1000<<10; i++ {
		fmt.Fprintf(&b, "    case %d: d['a'] = (input.bytes[i] << 8 | %d) / 10; break; // field %d\n", i, i&0xff, i)
	}
	b.WriteString("  }\n  return {data: d};\n}\n")
	var decoded []decoders.Decoded
	relaytest.Eventually(t, "the source is compiled and run in time, also on a busy machine", func() (any, bool) {
		d, err := newPool(t).Compile(b.String())
		if err == nil {
			decoded, err = d.(decoders.BatchDecoder).DecodeBatch(t.Context(), 1, frames(3), 0)
		}
		return err, err == nil
	})
	relaytest.Equal(t, "the results", summaryOf(decoded), "0, 25.7, 51.4")
}

func TestFramesBeyondTheBudgetAreSkipped(t *testing.T) {
	d := compile(t, newPool(t), sourceWith("if (input.bytes[0] === 1) for (;;); return {data: {a: input.bytes[0]}}"))
	decoded, err := d.DecodeBatch(t.Context(), 1, frames(4), 50*time.Millisecond)
	relaytest.NoError(t, err)
	if !exceedsLimit(decoded[1].Err) {
		t.Errorf("error of the second frame = %v, want an exceeded limit", decoded[1].Err)
	}
	relaytest.Equal(t, "the other results", summaryOf(append(decoded[:1], decoded[2:]...)), "0, skipped, skipped")
}

func TestResultsAreTheSameAsInProcess(t *testing.T) {
	d := compile(t, newPool(t), sourceWith(`return {data: {n: 1.5, whole: 3, yes: true, text: 'a"\u0000é', empty: '', nothing: null,
		history: [{time: 1767225600, n: 2}], params: input.variables.list.length, port: input.fPort, at: input.recvTime.getTime()}, warnings: ['w']}`))
	f := frames(1)[0]
	f.Params = map[string]any{"list": []any{1.0, "x"}}
	res, err := d.(decoders.Decoder).Decode(f)
	relaytest.NoError(t, err)
	inProcess := relaytest.Must(compileInProcess(d.(*decoder).source))(t)
	want, err := inProcess.Decode(f)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the result", res, want)
}

// After a worker has ended, requests grow to their former size.
func TestRequestsGrowAgainAfterAWorkerEnded(t *testing.T) {
	p := newPool(t)
	d := compile(t, p, sourceWith("if (input.bytes[0] === 1) { return Object.entries(new Uint8Array(4194304)) }\nreturn {data: {a: input.bytes[0]}}"))
	requests := 0
	d.(*decoder).call = func(ctx context.Context, owner int64, req request, source string) (response, error) {
		requests++
		return p.call(ctx, owner, req, source)
	}
	decoded, err := d.DecodeBatch(t.Context(), 1, frames(200), 0)
	relaytest.NoError(t, err)
	if !exceedsLimit(decoded[1].Err) || decoded[199].Err != nil {
		t.Errorf("error of the second frame = %v, want an exceeded limit; error of the last frame = %v, want none", decoded[1].Err, decoded[199].Err)
	}
	if requests > 20 {
		t.Errorf("%d requests for 200 frames with one that ends its worker, want at most 20", requests)
	}
}

func TestTheTimeOfTheFirstFrameIncludesCompiling(t *testing.T) {
	p := newPool(t)
	source := "var big = [" + strings.Repeat("{a: [1, 2, 3], b: 'text'}, ", 4_000) + "];\n" + sourceWith("return {data: {a: input.bytes[0]}}")
	d := compile(t, p, source)
	relaytest.NoError(t, p.idle[0].cmd.Process.Signal(syscall.SIGKILL))
	recompiled, err := d.DecodeBatch(t.Context(), 1, frames(2), 0)
	relaytest.NoError(t, err)
	cached, err := d.DecodeBatch(t.Context(), 1, frames(2), 0)
	relaytest.NoError(t, err)
	resp := relaytest.Must(p.call(t.Context(), 1, request{Hash: "another", Frames: []frame{{}}}, source))(t)
	if resp.CompileTime <= 0 || recompiled[0].CPUTime <= cached[0].CPUTime {
		t.Errorf("compiled in %s; the first frame took %s with a new worker, and %s with a worker that has the source", resp.CompileTime, recompiled[0].CPUTime, cached[0].CPUTime)
	}
}

func TestTheNumberOfKnownSourcesIsBounded(t *testing.T) {
	worker := relaytest.Must(startProcess(programPath()))(t)
	defer worker.end()
	for i := range maxKnown {
		worker.known[fmt.Sprint(i)] = true
	}
	for range 2 {
		relaytest.Must(worker.call(t.Context(), request{Hash: "h", Frames: []frame{{}}}, sourceWith("return {data: {}}")))(t)
	}
	relaytest.Equal(t, "the number of known sources", len(worker.known), 1)
}

// If a worker is killed from outside, its frames are decoded by another worker.
func TestAKilledWorkerIsReplaced(t *testing.T) {
	p := newPool(t)
	d := compile(t, p, sourceWith("return {data: {a: input.bytes[0]}}"))
	relaytest.Equal(t, "the number of workers", len(p.idle), 1)
	relaytest.NoError(t, p.idle[0].cmd.Process.Signal(syscall.SIGKILL))
	decoded, err := d.DecodeBatch(t.Context(), 1, frames(3), 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the results", summaryOf(decoded), "0, 1, 2")
}

func TestAnAccountHasAtMostOneWorker(t *testing.T) {
	p := newPool(t)
	p.free = 2
	worker1, err := p.acquire(t.Context(), 1)
	relaytest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() { _, err := p.acquire(ctx, 1); result <- err }()
	relaytest.Eventually(t, "the second call of the account waits", func() (any, bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiting), len(p.waiting) == 1
	})
	worker2, err := p.acquire(t.Context(), 2) // another account does not wait
	relaytest.NoError(t, err)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("error of the second call = %v, want context.Canceled", err)
	}
	p.release(2, worker2)
	p.release(1, worker1)
	relaytest.Equal(t, "the free workers", p.free, 2)
}

func TestManyCallersShareTheWorkers(t *testing.T) {
	p := newPool(t)
	d := compile(t, p, sourceWith("return {data: {a: input.bytes[0]}}"))
	var group sync.WaitGroup
	for owner := range int64(20) {
		group.Go(func() {
			decoded, err := d.DecodeBatch(t.Context(), owner%5, frames(10), 0)
			if err != nil || summaryOf(decoded) != "0, 1, 2, 3, 4, 5, 6, 7, 8, 9" {
				t.Errorf("owner %d: results = %s, error %v, want 0 to 9", owner, summaryOf(decoded), err)
			}
		})
	}
	group.Wait()
	relaytest.Equal(t, "the free workers", p.free, newPool(t).free)
}

func TestTheMemoryOfAWorkerIsLimited(t *testing.T) {
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		t.Skip("only Linux bounds the data segment")
	}
	for _, code := range []string{
		"return Object.entries(new Uint8Array(4194304))", "let a = []; for (;;) a.push(new ArrayBuffer(1e6))",
		"let s = 'xy'; for (;;) s += s", "let n = 3n; for (;;) n = n * n", "return new ArrayBuffer(2 ** 31).byteLength",
	} {
		worker := relaytest.Must(startProcess(programPath()))(t)
		_, err := worker.call(t.Context(), request{Hash: "h", Frames: []frame{{}}}, sourceWith(code))
		if err == nil {
			worker.end()
		}
		used := worker.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
		t.Logf("%s: %d MiB, %v", code, used, err)
		if used > 275 {
			t.Errorf("%s: the worker used %d MiB, want at most 275", code, used)
		}
	}
}

func TestAWorkerHasNoVariablesAndFilesOfTheGateway(t *testing.T) {
	t.Setenv("PENSTOCK_ADMIN_TOKEN", "secret")
	file := relaytest.Must(os.Create(filepath.Join(t.TempDir(), "ledger-key")))(t)
	defer file.Close()
	listener := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	worker := relaytest.Must(startProcess(programPath()))(t)
	defer worker.end()
	_, err := worker.call(t.Context(), request{Hash: "h", Frames: []frame{{}}}, sourceWith("return {data: {}}"))
	relaytest.NoError(t, err)
	dir := fmt.Sprintf("/proc/%d/", worker.cmd.Process.Pid)
	environment, err := os.ReadFile(dir + "environ")
	if os.IsNotExist(err) {
		t.Skip("/proc is not available")
	}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the environment", string(environment), "")
	for _, link := range relaytest.Must(filepath.Glob(dir + "fd/*"))(t) {
		if target, _ := os.Readlink(link); target == file.Name() || strings.HasPrefix(target, "socket:") {
			t.Errorf("the worker has descriptor %s of %s", filepath.Base(link), target)
		}
	}
}

// FuzzReceive checks that the parent accepts or refuses any message of a worker without a panic.
func FuzzReceive(f *testing.F) {
	for _, body := range []string{`{"results":[{"Readings":[{"Key":"a","Value":1}],"CPUTime":5}]}`, `{"unknown":true}`, `{"results":[{"CPUTime":-1,"Failure":{}}]}`, "", "[]"} {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, '{'})
	f.Fuzz(func(t *testing.T, message []byte) {
		var resp response
		if receive(bytes.NewReader(message), &resp, 1<<16) != nil {
			return
		}
		for _, r := range resp.Results {
			r.decoded()
		}
	})
}

// FuzzServe checks that a worker responds to any request, with at most one result for each
// frame. The requests run in this process, so only codecs that end by themselves are used.
func FuzzServe(f *testing.F) {
	const source = `function decodeUplink(input) {
		if (input.fPort === 2) { throw new Error("port") }
		return {data: {a: input.bytes[0], b: "text", c: [1, 2]}, warnings: ["w"], errors: input.bytes.length > 3 ? ["e"] : []};
	}`
	sources := []string{"", "function decodeUplink(){return {data:{}}}", "var a = 1", "}"} // other sources might not end
	for _, body := range []string{
		`{"hash":"known","frames":[{"payload":"AQID","port":1,"fcnt":7,"id":"d","params":{"x":[1,null,"y"]}},{"port":2},{"payload":"AQIDBA=="}]}`,
		`{"hash":"known","frames":[{},{},{}],"budget":1}`, `{"hash":"new","source":"function decodeUplink(){return {data:{}}}","frames":[{}]}`,
		`{"hash":"new","source":"function decodeUplink(){return {data:{}}}"}`, `{"hash":"new","source":"var a = 1"}`, `{"hash":"new","source":"}"}`, `{"hash":"unknown"}`, `{}`,
	} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, cacheFull bool) {
		var req request
		var message bytes.Buffer
		relaytest.NoError(t, binary.Write(&message, binary.BigEndian, uint32(len(body))))
		message.Write(body)
		if receive(&message, &req, 1<<16) != nil || !slices.Contains(sources, req.Source) {
			return
		}
		w := &worker{codecs: make(map[string]*javascript.Codec)}
		if resp := w.serve(request{Hash: "known", Source: source}); resp.Invalid != nil {
			t.Fatalf("the source is invalid: %v", resp.Invalid)
		}
		if cacheFull {
			w.sourceSize = maxSources
		}
		resp := w.serve(req)
		if len(resp.Results) > len(req.Frames) || resp.Exits {
			t.Errorf("%d results for %d frames, Exits = %t", len(resp.Results), len(req.Frames), resp.Exits)
		}
		message.Reset()
		relaytest.NoError(t, send(&message, resp), receive(&message, new(response), maxResponse))
	})
}

func BenchmarkDecodeBatch(b *testing.B) {
	d := compile(b, newPool(b), sourceWith("var b = input.bytes; return {data: {temperature: ((b[0] << 8) | b[1]) / 10, humidity: b[2] / 2, battery: b[3]}}"))
	for _, n := range []int{1, 20, 500} {
		b.Run(fmt.Sprintf("%d frames", n), func(b *testing.B) {
			frames := make([]*decoders.Frame, n)
			for i := range frames {
				frames[i] = &decoders.Frame{Payload: []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, FPort: 1, HasFPort: true}
			}
			for b.Loop() {
				if _, err := d.DecodeBatch(b.Context(), 1, frames, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/frame")
		})
	}
}

func compileInProcess(source string) (decoders.Decoder, error) { return javascript.Compile(source) }

func TestSkippedAndTheErrorFormatOfAWorkerAreIgnored(t *testing.T) {
	var r result
	relaytest.NoError(t, json.Unmarshal([]byte(`{"Skipped":true,"Failure":{"Format":"lpp","Field":"f","Offset":7,"Reason":"reason"}}`), &r))
	want := decoders.Decoded{Err: &decoders.Error{Format: "javascript", Field: "f", Offset: -1, Reason: "reason"}}
	relaytest.Equal(t, "the result in the gateway", r.decoded(), want)
}
