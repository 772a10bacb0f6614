// Command teamlabels listens for the calls of the team labels example's hook; package teamlabels answers them.
package main

import (
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/cairn-dev/cairn/examples/teamlabels"
)

func main() {
	address := flag.String("address", "127.0.0.1:8086", "where to listen")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: teamlabels.Hook(), ReadHeaderTimeout: 5 * time.Second}
	slog.Info("Listening", "address", *address)
	slog.Error("The hook has ended", "error", server.ListenAndServe())
	os.Exit(1)
}
