package main

import (
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/openapitest"
)

// misuse sends every operation of the API with keys in every place of a request, in good and in bad ones.
func (m *mine) misuse(address, device string, keys map[string]string) {
	m.t.Helper()
	for _, operation := range openapitest.API().Operations() {
		_, err := m.conn.Exec(m.t.Context(), "DELETE FROM rate_windows") // So that no key is at its limit.
		require.NoError(m.t, err)
		method, path, _ := strings.Cut(operation, " ")
		url := "http://" + address + "/v1" + strings.ReplaceAll(path, "{device_id}", device)
		for _, key := range []string{keys["key"], keys["key"] + "x", keys["revoked"], keys["ingest"]} {
			for _, place := range places(url, key) {
				m.send("answers of the api", method, place, `{"metadata":{}}`, key, "Authorization: Bearer "+key)
			}
		}
		for _, line := range headers(keys["key"]) {
			m.send("answers of the api", method, url, `{"metadata":{}}`, keys["key"], line)
		}
	}
	for _, body := range []string{`KEY`, `"KEY"`, `{"KEY":1}`, `{"display_name":1,"KEY":1}`, `{"metadata":{"KEY":1}}`, `{"metadata":"KEY"}`, `{"assignment":"KEY"}`} {
		m.send("answers of the api", http.MethodPatch, "http://"+address+"/v1/devices/"+device, strings.ReplaceAll(body, "KEY", keys["key"]),
			keys["key"], "Authorization: Bearer "+keys["key"])
	}
	for _, path := range []string{"/", "/KEY", "/docs?key=KEY", "/docs/KEY", "/docs/errors/KEY", "/docs/errors/none?key=KEY", "/v1?key=KEY", "/v1/KEY?KEY"} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions} {
			m.send("answers of the api", method, "http://"+address+strings.ReplaceAll(path, "KEY", keys["key"]), "", keys["key"])
		}
	}
	m.babble("answers of the api", address, keys["key"])
}

// places are a URL with a key where it belongs on one endpoint, and where it never does.
func places(url, key string) (all []string) {
	all = []string{url, url + "/" + key, url + "/..%2f" + key, strings.Replace(url, "/v1/", "/v1/"+key+"/", 1)}
	for _, query := range []string{
		"key=KEY", "key=KEY&key=KEY", "key=KEY;a", "key=KEY&last=%zz", "key=KEY%00", "KEY", "KEY=1", "apikey=KEY", "key=KEY&shape=tall",
		"cursor=KEY", "limit=KEY", "last=KEY", "from=KEY", "devices=KEY", "assignment_id=KEY", "shape=KEY", "metadata.KEY=%ff", "metadata.site=KEY",
	} {
		all = append(all, url+"?"+strings.ReplaceAll(query, "KEY", key))
	}
	return all
}

// headers are lines that carry a key as they should not. An Idempotency-Key is the client's own text, and kept.
func headers(key string) (all []string) {
	for _, line := range []string{
		"Authorization: KEY", "Authorization: Basic KEY", "Authorization: bearer:KEY", "Authorization: Bearer KEY=KEY", "X-Api-Key: KEY",
		"Cookie: key=KEY", "User-Agent: KEY", "Referer: https://example.com/v1/readings.csv?key=KEY", "X-Request-Id: KEY", "Accept-Encoding: KEY",
		"If-None-Match: KEY", "Content-Type: KEY", "Content-Encoding: KEY", "X-Forwarded-For: KEY", "traceparent: KEY",
	} {
		all = append(all, strings.ReplaceAll(line, "KEY", key))
	}
	return all
}

// send asks once with the lines and, where these are no credential, once with one beside them.
func (m *mine) send(from, method, url, body, key string, lines ...string) {
	m.t.Helper()
	for _, extra := range []string{"", "Authorization: Bearer " + key} {
		request, err := http.NewRequestWithContext(m.t.Context(), method, url, strings.NewReader(body))
		require.NoError(m.t, err)
		request.Header.Set("Content-Type", "application/json")
		for _, line := range append([]string{extra}, lines...) {
			if name, value, ok := strings.Cut(line, ": "); ok {
				request.Header.Set(name, value)
			}
		}
		require.NotEqual(m.t, http.StatusInternalServerError, m.take(from, request))
	}
}

// misuseReceiver does the same to the receiver.
func (m *mine) misuseReceiver(address string, keys map[string]string) {
	m.t.Helper()
	const upload = `{"hardware_id":"dev:1","readings":[]}`
	for _, key := range []string{keys["ingest"], keys["ingest"] + "x", keys["key"]} {
		for _, place := range places("http://"+address+"/uploads", key) {
			m.send("answers of the receiver", http.MethodPost, place, upload, key)
		}
		for _, line := range headers(key) {
			m.send("answers of the receiver", http.MethodPost, "http://"+address+"/uploads", upload, key, line)
		}
		for _, body := range []string{key, `{"` + key + `":1}`, `{"hardware_id":"` + key + `","readings":[]}`, upload + "\n" + key} {
			m.send("answers of the receiver", http.MethodPost, "http://"+address+"/uploads", body, key)
		}
	}
	m.babble("answers of the receiver", address, keys["ingest"])
}

// babble sends what is no HTTP, or hardly.
func (m *mine) babble(from, address, key string) {
	m.t.Helper()
	for _, text := range []string{
		"GET /v1/readings.csv?key=KEY HTTP/9.9\r\n\r\n", "GET /v1/readings.csv?key=KEY\r\n\r\n", "KEY\r\n\r\n", "KEY / HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /v1/readings.csv?key=KEY HTTP/1.1\r\nHost: x\r\nKEY\r\n\r\n", "GET /%zz?key=KEY HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://u:KEY@x/v1/team HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /v1/team HTTP/1.1\r\nHost: KEY\r\nConnection: close\r\n\r\n",
		"PATCH /v1/team?key=KEY HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: KEY\r\n\r\n", "POST /uploads?key=KEY HTTP/1.1\r\nHost: x\r\nContent-Length: KEY\r\n\r\n",
		"GET /v1/team HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\nX: " + strings.Repeat("KEY", 2000) + "\r\n\r\n",
	} {
		conn, err := (&net.Dialer{}).DialContext(m.t.Context(), "tcp", address)
		require.NoError(m.t, err)
		_, err = io.WriteString(conn, strings.ReplaceAll(text, "KEY", key))
		require.NoError(m.t, err)
		require.NoError(m.t, conn.(*net.TCPConn).CloseWrite())
		_, _ = io.Copy(m.by(from), conn) // It may be broken off.
		require.NoError(m.t, conn.Close())
	}
}
