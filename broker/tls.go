package broker

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/nixie-go/nixie"
)

// ReadTLS returns the configuration of a connection with TLS 1.2 or later, from files in PEM: the
// authority of the servers, else that of the machine, and the client's own certificate with its
// key, if any. Errors name whose files they are, and are CodeInvalid.
func ReadTLS(of, ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "ca of %s: %w: name a file with certificates in PEM", of, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, nixie.Errorf(nixie.CodeInvalid, "ca of %s: %s has no certificate in PEM", of, ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, nixie.Errorf(nixie.CodeInvalid, "cert and key of %s belong together: give both", of)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInvalid, "cert and key of %s: %w: name files in PEM that belong together", of, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
