// Command bluegreen listens for the calls of the blue-green example's hook; package bluegreen answers them.
package main

import (
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/cairn-dev/cairn/examples/bluegreen"
)

func main() {
	address := flag.String("address", "127.0.0.1:8082", "where to listen")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: bluegreen.Hook(), ReadHeaderTimeout: 5 * time.Second}
	slog.Info("Listening", "address", *address)
	slog.Error("The hook has ended", "error", server.ListenAndServe())
	os.Exit(1)
}
