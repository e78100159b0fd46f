package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

var (
	endpoint = strings.TrimRight(os.Getenv("COSMOS_ENDPOINT"), "/")
	key      = os.Getenv("COSMOS_KEY")
	trusted  = certificates()
	client   = &http.Client{Transport: &http.Transport{TLSClientConfig: trusted}}
)

// certificates are those of the server, where it has one.
func certificates() *tls.Config {
	file := os.Getenv("COSMOS_CA_FILE")
	if file == "" {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(file)))
	return &tls.Config{RootCAs: pool}
}

// rest is a request of the NoSQL API, which makes the containers that graphs are.
func rest(method, path, kind, link, body string) {
	date := time.Now().UTC().Format(http.TimeFormat)
	text := strings.Join([]string{strings.ToLower(method), kind, link, strings.ToLower(date), "", ""}, "\n")
	mac := hmac.New(sha256.New, must(base64.StdEncoding.DecodeString(key)))
	mac.Write([]byte(text))
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	request := must(http.NewRequest(method, endpoint+path, strings.NewReader(body)))
	request.Header.Set("authorization", url.QueryEscape("type=master&ver=1.0&sig="+signature))
	request.Header.Set("x-ms-date", date)
	request.Header.Set("x-ms-version", "2018-12-31")
	request.Header.Set("content-type", "application/json")
	answer := must(client.Do(request))
	answer.Body.Close()
	if answer.StatusCode >= 300 {
		panic(fmt.Sprint(method, " ", path, ": ", answer.Status))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
