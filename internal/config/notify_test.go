package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

func TestMail(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"": true, "smtp://smtp.example.com": true, "smtp://user:p%40ss@smtp.example.com:587": true, "smtps://127.0.0.1:465": true,
		"smtp.example.com": false, "http://smtp.example.com": false, "smtp://": false, "smtp://host:65536": false, "smtp://host/x": false,
		"smtp://user:p@ss@host": true, "smtp://host?starttls=no": false,
	} {
		err := (&config.Mail{SMTPURL: config.Secret(url), MailFrom: "Room sensors <rooms@example.com>"}).Validate()
		require.Equal(t, ok, err == nil, "%s: %v", url, err)
		if err != nil && len(url) > 10 {
			require.NotContains(t, err.Error(), url, "it may have a password")
		}
	}
	require.ErrorContains(t, (&config.Mail{SMTPURL: "smtp://host"}).Validate(), "is missing")
	require.ErrorContains(t, (&config.Mail{MailFrom: "rooms"}).Validate(), "must be an address")
	require.NoError(t, (&config.Mail{}).Validate())
}
