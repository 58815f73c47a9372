package fleet

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// receiver is an HTTP client of a receiver. A device does little for a request, but net/http takes as much processor
// time for one as the receiver does. The devices share the processors with the service, so they use fasthttp.
type receiver struct{ client *fasthttp.HostClient }

// postTimeout bounds a request to a receiver.
const postTimeout = 20 * time.Second

func newReceiver(address string, connections int) *receiver {
	return &receiver{&fasthttp.HostClient{
		Addr: address, MaxConns: connections, ReadTimeout: postTimeout, WriteTimeout: postTimeout,
		RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false }, // The trial counts failures.
	}}
}

func (r *receiver) close() { r.client.CloseIdleConnections() }

// post sends a body once. The result is the status, and the Retry-After or 0.
func (r *receiver) post(credential string, body []byte) (status int, after time.Duration, err error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + r.client.Addr + "/uploads")
	request.Header.SetMethod(http.MethodPost)
	request.Header.Set("Authorization", "Bearer "+credential)
	request.SetBodyRaw(body)
	if err := r.client.Do(request, response); err != nil {
		return 0, 0, fmt.Errorf("posting uploads: %w", err)
	}
	if seconds, err := strconv.Atoi(string(response.Header.Peek("Retry-After"))); err == nil {
		after = time.Duration(seconds) * time.Second
	}
	return response.StatusCode(), after, nil
}
