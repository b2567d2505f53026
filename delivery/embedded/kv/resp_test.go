package kv

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestReadRequest(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
		err      error
	}{
		{"one argument", "*1\r\n$4\r\nPING\r\n", []string{"PING"}, nil},
		{"an empty argument and one with line ends", "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n", []string{"SET", "", "a\r\nb"}, nil},
		{"nothing more comes", "", nil, io.EOF},
		{"cut off in the count", "*2", nil, io.ErrUnexpectedEOF},
		{"cut off between arguments", "*2\r\n$1\r\na\r\n", nil, io.ErrUnexpectedEOF},
		{"cut off in an argument", "*1\r\n$4\r\nPI", nil, io.ErrUnexpectedEOF},
		{"an inline command", "PING\r\n", nil, errProtocol},
		{"no argument at all", "*0\r\n", nil, errProtocol},
		{"a negative count", "*-1\r\n", nil, errProtocol},
		{"a bare line feed", "*1\n$4\nPING\n", nil, errProtocol},
		{"a number instead of a string", "*1\r\n:1\r\n", nil, errProtocol},
		{"a string longer than it said", "*1\r\n$2\r\nPING\r\n", nil, errProtocol},
		{"a string that says it is huge", "*1\r\n$99999999999\r\n", nil, errProtocol},
		{"too many arguments", "*1048577\r\n", nil, errProtocol},
		{"a line without end", "*" + strings.Repeat("1", 5000), nil, errProtocol},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readRequest(bufio.NewReader(strings.NewReader(tc.in)))
			if !reflect.DeepEqual(got, tc.want) || !errors.Is(err, tc.err) {
				t.Fatalf("got %q, %v; want %q, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func encodeRequest(args []string) []byte {
	var b bytes.Buffer
	b.WriteString("*" + strconv.Itoa(len(args)) + "\r\n")
	for _, a := range args {
		b.WriteString("$" + strconv.Itoa(len(a)) + "\r\n" + a + "\r\n")
	}
	return b.Bytes()
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n"))
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*1\r\n$4\r\nQUIT\r\n"))
	f.Add([]byte("*-1\r\n"))
	f.Add([]byte("*1048576\r\n$67108864\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			args, err := readRequest(r)
			if err != nil {
				return
			}
			back, err := readRequest(bufio.NewReader(bytes.NewReader(encodeRequest(args))))
			if err != nil || !reflect.DeepEqual(args, back) {
				t.Fatalf("%q read and written again is %q, %v", args, back, err)
			}
		}
	})
}
