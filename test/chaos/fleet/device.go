package fleet

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// deviceClient sends the uploads of devices to a receiver. The devices share the processors with the service, so they
// use fasthttp, which takes less of them than net/http.
type deviceClient struct{ client *fasthttp.HostClient }

// postTimeout bounds a request to a receiver.
const postTimeout = 20 * time.Second

func newDeviceClient(address string, connections int) *deviceClient {
	return &deviceClient{&fasthttp.HostClient{
		Addr: address, MaxConns: connections, ReadTimeout: postTimeout, WriteTimeout: postTimeout,
		RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false }, // The trial counts failures.
	}}
}

func (d *deviceClient) close() { d.client.CloseIdleConnections() }

// post sends a body once. The result is the status, and the Retry-After or 0.
func (d *deviceClient) post(credential string, body []byte) (status int, after time.Duration, err error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + d.client.Addr + "/uploads")
	request.Header.SetMethod(http.MethodPost)
	request.Header.Set("Authorization", "Bearer "+credential)
	request.SetBodyRaw(body)
	if err := d.client.Do(request, response); err != nil {
		return 0, 0, fmt.Errorf("posting uploads: %w", err)
	}
	if seconds, err := strconv.Atoi(string(response.Header.Peek("Retry-After"))); err == nil {
		after = time.Duration(seconds) * time.Second
	}
	return response.StatusCode(), after, nil
}
