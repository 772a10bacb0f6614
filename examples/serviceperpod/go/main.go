// Command serviceperpod listens for the calls of the service per pod example's hook; package serviceperpod answers
// them.
package main

import (
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/cairn-dev/cairn/examples/serviceperpod"
)

func main() {
	address := flag.String("address", "127.0.0.1:8084", "where to listen")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: serviceperpod.Hook(), ReadHeaderTimeout: 5 * time.Second}
	slog.Info("Listening", "address", *address)
	slog.Error("The hook has ended", "error", server.ListenAndServe())
	os.Exit(1)
}
