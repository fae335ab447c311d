/*
Copyright The Cozystack Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package golden

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRedactMessage(t *testing.T) {
	for _, test := range []struct {
		name    string
		message string
		want    string
	}{
		{
			name:    "a message without a secret is kept",
			message: "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found",
			want:    "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found",
		},
		{
			name:    "a URL without a secret is kept",
			message: "GET https://factory.talos.dev:8443/image/abc/v1.13.6/openstack-amd64.raw.xz: timeout",
			want:    "GET https://factory.talos.dev:8443/image/abc/v1.13.6/openstack-amd64.raw.xz: timeout",
		},
		{
			name:    "credentials of a URL are dropped",
			message: "GET https://user:s3cret@mirror.local/image: timeout",
			want:    "GET https://mirror.local/image: timeout",
		},
		{
			name:    "a name alone may be a token",
			message: "GET https://s3cret@mirror.local/image",
			want:    "GET https://mirror.local/image",
		},
		{
			name:    "an @ in a password belongs to it",
			message: "GET https://user:s3@cret@mirror.local/image",
			want:    "GET https://mirror.local/image",
		},
		{
			name:    "values of a query are dropped, their names are kept",
			message: "GET https://mirror.local/image?token=s3cret&sig=s3cret2&flag, retrying",
			want:    "GET https://mirror.local/image?token=redacted&sig=redacted&redacted, retrying",
		},
		{
			name:    "a fragment is dropped",
			message: "GET https://mirror.local/image#s3cret",
			want:    "GET https://mirror.local/image",
		},
		{
			name:    "a quoted URL is a URL",
			message: `Get "https://user:s3cret@mirror.local/image?token=s3cret": dial tcp: lookup mirror.local: no such host`,
			want:    `Get "https://mirror.local/image?token=redacted": dial tcp: lookup mirror.local: no such host`,
		},
		{
			name:    "a URL in quotes that were quoted again is a URL",
			message: `{\"error\":\"Get \\\"https://user:s3cret@mirror.local/image?token=s3cret\\\": EOF\"}`,
			want:    `{\"error\":\"Get \\\"https://mirror.local/image?token=redacted": EOF\"}`,
		},
		{
			name:    "a URL in single quotes is a URL",
			message: "source 'https://user:s3cret@mirror.local/image?token=s3cret': gone",
			want:    "source 'https://mirror.local/image?token=redacted': gone",
		},
		{
			name:    "a URL whose slashes are escaped is a URL",
			message: `{"url":"https:\/\/user:s3cret@mirror.local\/image?token=s3cret"}`,
			want:    `{"url":"https:\/\/mirror.local\/image?token=redacted"}`,
		},
		{
			name:    "an escaped & does not end a value",
			message: `GET /image?token=s3cret\u0026sig=s3cret`,
			want:    `GET /image?token=redacted`,
		},
		{
			name:    "a password with a slash leaves nothing of the URL",
			message: "GET https://user:s3/cret@mirror.local/image: timeout",
			want:    "GET https://redacted timeout",
		},
		{
			name:    "a password of digits with a slash leaves nothing of the URL",
			message: "GET https://user:12/34s3cret@mirror.local/image",
			want:    "GET https://redacted",
		},
		{
			name:    "a password with a quotation mark leaves nothing of the URL",
			message: `GET https://user:s3"cret@mirror.local/image`,
			want:    "GET https://redacted",
		},
		{
			name:    "a password that begins with a quotation mark leaves nothing of the URL",
			message: `GET https://user:"s3cret@mirror.local/image`,
			want:    "GET https://redacted",
		},
		{
			name:    "a password with a question mark leaves nothing of the URL",
			message: "GET https://user:s3?cret@mirror.local/image",
			want:    "GET https://redacted",
		},
		{
			name:    "an address with brackets is a host",
			message: "GET http://user:s3cret@[fd00::1]:8080/image",
			want:    "GET http://[fd00::1]:8080/image",
		},
		{
			name:    "the URL that a proxy was asked for is a URL",
			message: "GET http://proxy:3128/https://user:s3cret@mirror.local/image?token=s3cret",
			want:    "GET http://redacted",
		},
		{
			name:    "a path may have a query without a URL",
			message: "GET /image?token=s3cret&x=1: 403",
			want:    "GET /image?token=redacted&x=redacted 403",
		},
		{
			name:    "a password may stand in front of a host without a URL",
			message: "lookup user:s3cret@mirror.local: no such host",
			want:    "lookup redacted@mirror.local: no such host",
		},
		{
			name:    "a digest is no host",
			message: "Back-off pulling image quay.io/kubevirt/cdi-importer:v1.66.0@sha256:0123 or docker://quay.io:443/cdi@sha256:0123",
			want:    "Back-off pulling image quay.io/kubevirt/cdi-importer:v1.66.0@sha256:0123 or docker://quay.io:443/cdi@sha256:0123",
		},
		{
			name:    "each of several URLs is redacted",
			message: "http://a:s3cret@h/x then http://b:s3cret@h/y",
			want:    "http://h/x then http://h/y",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := RedactMessage(test.message)
			if got != test.want {
				t.Errorf("RedactMessage(%q)\n got %q\nwant %q", test.message, got, test.want)
			}
			if again := RedactMessage(got); again != got {
				t.Errorf("redacted again, %q is %q", got, again)
			}
		})
	}
}

func TestRedactionComesBeforeTheCut(t *testing.T) {
	// The cut would leave a host that is the beginning of the credentials.
	message := strings.Repeat("x", messageLimit-len(" https://s3cret")) + " https://s3cret:s3cret@mirror.local/image"
	got := RedactMessage(message)
	if strings.Contains(got, "s3cret") {
		t.Errorf("a cut message ends with %q", got[len(got)-40:])
	}
	if len(got) > messageLimit {
		t.Errorf("the message has %d bytes, want at most %d", len(got), messageLimit)
	}
}

func TestLongTextIsCutBetweenCharacters(t *testing.T) {
	long := strings.Repeat("ü", 10<<10)
	for limit, got := range map[int]string{messageLimit: RedactMessage("a" + long), urlLimit: RedactURL("https://host/" + long)} {
		if len(got) > limit || len(got) < limit-utf8.UTFMax || !utf8.ValidString(got) {
			t.Errorf("the text has %d bytes, want %d of valid UTF-8", len(got), limit)
		}
	}
}

func FuzzRedactMessage(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "https://u:p@h/p?q=v#f", `Get "https:\/\/u:p@h": x`, "://@?&=#", "a:b@c", "http://\xff@\x80", "?a=b&c=d;e",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// A word that occurs in no seed stands for the secret.
		const secret = "Zq7Zq7"
		clean := strings.NewReplacer(secret, "", "\\", "", "\"", "", "`", "", "<", "", ">", "").Replace(text)
		got := RedactMessage("https://user:" + secret + "@host/path?token=" + secret + " " + clean)
		if strings.Contains(got, secret) {
			t.Errorf("the secret is in %q", got)
		}
		if !utf8.ValidString(got) || len(got) > messageLimit {
			t.Errorf("%q is not valid or too long", got)
		}
	})
}
