// Command catset listens for the calls of the CatSet example's hook; package catset answers them.
package main

import (
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/cairn-dev/cairn/examples/catset"
)

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: catset.Hook(), ReadHeaderTimeout: 5 * time.Second}
	slog.Info("Listening", "address", *address)
	slog.Error("The hook has ended", "error", server.ListenAndServe())
	os.Exit(1)
}
