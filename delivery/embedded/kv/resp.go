package kv

import (
	"bufio"
	"errors"
	"io"
	"strconv"
)

// Limits of a request: what a client of this daemon never comes near.
const (
	maxBulk    = 64 << 20
	maxRequest = 128 << 20
	maxLine    = 32
)

var errProtocol = errors.New("Protocol error: expected an array of bulk strings")

// readRequest reads one command in the form that every client library sends, an
// array of bulk strings (RESP, "Clients and servers"). Inline commands are
// refused. The strings do not alias the reader's buffer.
func readRequest(r *bufio.Reader) ([]string, error) {
	argc, err := readLength(r, '*', maxArgs)
	if err != nil {
		return nil, err
	}
	if argc == 0 {
		return nil, errProtocol
	}
	args := make([]string, 0, min(argc, 64))
	total := 0
	for range argc {
		n, err := readLength(r, '$', maxBulk)
		if err != nil {
			return nil, unexpected(err)
		}
		if total += n; total > maxRequest {
			return nil, errProtocol
		}
		arg, err := readBulk(r, n)
		if err != nil {
			return nil, unexpected(err)
		}
		args = append(args, arg)
	}
	return args, nil
}

// unexpected tells a request that was cut off from a connection that ended.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func readLength(r *bufio.Reader, kind byte, limit int) (int, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, errProtocol
	}
	if err != nil {
		if len(line) > 0 {
			err = unexpected(err)
		}
		return 0, err
	}
	if len(line) < 4 || len(line) > maxLine || line[0] != kind || line[len(line)-2] != '\r' {
		return 0, errProtocol
	}
	n, err := strconv.ParseUint(string(line[1:len(line)-2]), 10, 31)
	if err != nil || int(n) > limit {
		return 0, errProtocol
	}
	return int(n), nil
}

// readBulk takes memory as the bytes arrive, not as they are announced.
func readBulk(r *bufio.Reader, n int) (string, error) {
	buf := make([]byte, 0, min(n+2, 64<<10))
	for len(buf) < n+2 {
		at := len(buf)
		buf = append(buf, make([]byte, min(n+2-at, 64<<10))...)
		if _, err := io.ReadFull(r, buf[at:]); err != nil {
			return "", err
		}
	}
	if buf[n] != '\r' || buf[n+1] != '\n' {
		return "", errProtocol
	}
	return string(buf[:n]), nil
}
