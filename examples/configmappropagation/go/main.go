// Command configmappropagation listens for the calls of the config map propagation example's hook; package
// configmappropagation answers them.
package main

import (
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/cairn-dev/cairn/examples/configmappropagation"
)

func main() {
	address := flag.String("address", "127.0.0.1:8085", "where to listen")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: configmappropagation.Hook(), ReadHeaderTimeout: 5 * time.Second}
	slog.Info("Listening", "address", *address)
	slog.Error("The hook has ended", "error", server.ListenAndServe())
	os.Exit(1)
}
