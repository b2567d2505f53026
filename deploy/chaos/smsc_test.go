package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/pdu"
)

func TestAConnectionAcceptedBeforeTheSMSCDiedEndsWithIt(t *testing.T) {
	s, err := newSMSC()
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	s.kill()
	esme, conn := net.Pipe()
	go s.serve(conn)
	_ = esme.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := esme.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a link of a killed SMSC: %v, want its end", err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	bound, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bound.Close() }()
	_, _ = bound.Write(marshal(pdu.NewEnquireLink()))
	_ = bound.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := pdu.Parse(bound); err != nil {
		t.Errorf("a link of a restarted SMSC: %v, want an answer", err)
	}
}
