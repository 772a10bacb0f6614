// Command indexedjob listens for the calls of the indexed job example's hook; package indexedjob answers them.
package main

import (
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/cairn-dev/cairn/examples/indexedjob"
)

func main() {
	address := flag.String("address", "127.0.0.1:8083", "where to listen")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: indexedjob.Hook(), ReadHeaderTimeout: 5 * time.Second}
	slog.Info("Listening", "address", *address)
	slog.Error("The hook has ended", "error", server.ListenAndServe())
	os.Exit(1)
}
