// Command sink is an HTTP endpoint for trials: it answers every request with 200 and prints one
// line per request.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	addr := flag.String("listen", "127.0.0.1:9099", "address to listen on")
	flag.Parse()
	server := &http.Server{Addr: *addr, Handler: http.HandlerFunc(show), ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, "sink:", server.ListenAndServe())
	os.Exit(1)
}

func show(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	fmt.Printf("%s %s %s\n", r.Method, r.URL, body)
	w.WriteHeader(http.StatusOK)
}
