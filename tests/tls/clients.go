// Go's net/http as a client of run.py: `clients CASE ec=PORT rsa=PORT ca=FILE digest=HEX`.
// The last line on standard output is JSON: `ok` and `detail`.
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
)

type result struct {
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

var given = map[string]string{}

func client(config *tls.Config) *http.Client {
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(given["ca"])
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		panic("no authority")
	}
	config.RootCAs = pool
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 15 * time.Second}
}

func get(client *http.Client, site, path string) (*tls.ConnectionState, []byte, error) {
	answer, err := client.Get("https://localhost:" + given[site] + path)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != 200 {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	return answer.TLS, body, err
}

// small asks both sites for the small file, and says what was negotiated.
func small(config *tls.Config) (string, error) {
	said := []string{}
	for _, site := range []string{"ec", "rsa"} {
		client := client(config.Clone())
		state, body, err := get(client, site, "/hello.txt")
		if err != nil {
			return "", err
		}
		if string(body) != "hello\n" {
			return "", fmt.Errorf("a wrong body: %q", body)
		}
		said = append(said, fmt.Sprintf("%s: %s, %s, %s", site, tls.VersionName(state.Version), state.CurveID,
			tls.CipherSuiteName(state.CipherSuite)))
		client.CloseIdleConnections()
	}
	return strings.Join(said, "; "), nil
}

func large(config *tls.Config) error {
	for _, site := range []string{"ec", "rsa"} {
		_, body, err := get(client(config.Clone()), site, "/large.bin")
		if err != nil {
			return err
		}
		digest := sha256.Sum256(body)
		if hex.EncodeToString(digest[:]) != given["digest"] {
			return fmt.Errorf("a wrong body of %d bytes", len(body))
		}
	}
	return nil
}

func resumed() (string, error) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := &tls.Config{MinVersion: version, MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
		client := client(config)
		for visit := range 2 {
			state, _, err := get(client, "ec", "/hello.txt")
			if err != nil {
				return "", err
			}
			if state.DidResume != (visit == 1) {
				return "", fmt.Errorf("%s, visit %d: resumed is %v", tls.VersionName(version), visit+1, state.DidResume)
			}
			client.CloseIdleConnections()
		}
	}
	return "both versions", nil
}

func run(name string) (string, error) {
	switch name {
	case "go-default":
		return small(&tls.Config{})
	case "go-tls12":
		config := &tls.Config{MaxVersion: tls.VersionTLS12}
		said, err := small(config)
		if err == nil {
			err = large(config)
		}
		return said, err
	case "go-classic":
		return small(&tls.Config{CurvePreferences: []tls.CurveID{tls.X25519}})
	case "go-resumed":
		return resumed()
	case "go-large":
		return runtime.Version(), large(&tls.Config{})
	}
	return "", fmt.Errorf("no case %s", name)
}

func main() {
	for _, word := range os.Args[2:] {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	detail, err := run(os.Args[1])
	said := result{OK: err == nil, Detail: detail}
	if err != nil {
		said.Detail = err.Error()
	}
	line, _ := json.Marshal(said)
	fmt.Println(string(line))
}
