package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/linxGnu/gosmpp/pdu"
)

func TestAConnectionAcceptedBeforeTheSMSCIsKilledIsClosed(t *testing.T) {
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
		t.Errorf("read from a killed SMSC: %v, want EOF", err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	_, _ = client.Write(marshal(pdu.NewEnquireLink()))
	_ = client.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := pdu.Parse(client); err != nil {
		t.Errorf("read from a restarted SMSC: %v, want an answer", err)
	}
}
