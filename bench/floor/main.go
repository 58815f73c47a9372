// Floor is the least that a receiver can be: a server of net/http that looks up a key, reads the body of an upload and
// checks it, and stores nothing. It serves on the address in its argument until it is killed.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"roomsensor/internal/upload"
)

func main() {
	server := &http.Server{Addr: os.Args[1], Handler: handler(), ReadHeaderTimeout: time.Minute}
	_, _ = fmt.Fprintln(os.Stderr, server.ListenAndServe()) // It ends with an error only.
	os.Exit(1)
}

func handler() http.Handler {
	keys := map[[sha256.Size]byte]bool{sha256.Sum256([]byte("Bearer floor")): true}
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /uploads", func(w http.ResponseWriter, r *http.Request) {
		if !keys[sha256.Sum256([]byte(r.Header.Get("Authorization")))] {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body := buffers.Get().(*bytes.Buffer) //nolint:forcetypeassert // The pool has no other type.
		defer buffers.Put(body)
		body.Reset()
		if _, err := body.ReadFrom(r.Body); err != nil {
			return
		}
		if _, fault := upload.Check(body.Bytes()); fault != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"status":"accepted"}`) // The client would notice.
	})
	return mux
}
