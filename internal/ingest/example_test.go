package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"hookglass/internal/ingest"
)

// One listener serves hooks and everything else.
func ExampleFront_Serve() {
	front := ingest.New(ingest.Config{MaxBodyBytes: 1 << 20}, new(stub), slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	rest := &http.Server{Handler: front.Handler(mux)}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	served := make(chan error)
	go func() { served <- front.Serve(ln, nil, rest) }()

	resp, err := http.Post("http://"+ln.Addr().String()+"/hooks/"+knownRef+"/a//b", "text/plain", strings.NewReader("body"))
	fmt.Println(resp.Status, err)
	resp, err = http.Get("http://" + ln.Addr().String() + "/healthz")
	fmt.Println(resp.Status, err)

	fmt.Println(front.Shutdown(context.Background()))
	fmt.Println(errors.Is(<-served, http.ErrServerClosed))
	// Output:
	// 200 OK <nil>
	// 200 OK <nil>
	// <nil>
	// true
}
