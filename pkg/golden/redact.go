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
	"regexp"
	"strings"

	"github.com/cozystack/workerimage-apiserver/pkg/internal/freeform"
)

const (
	urlLimit     = 2048
	messageLimit = 1024

	redacted = "redacted"
)

var (
	// urlRegexp takes a URL, its slashes escaped or not, and whatever follows it up to the next blank.
	urlRegexp = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:\\?/\\?/)(\S*)`)
	// hostRegexp is a host with an optional port.
	hostRegexp = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]*\]|[A-Za-z0-9._-]*)(:[0-9]*)?$`)
	// parameterRegexp is a query parameter behind a path.
	parameterRegexp = regexp.MustCompile("([?&][^\\s=&?\"'`<>]+=)[^\\s&\"'`<>]+")
	// passwordRegexp is a name and a password in front of a host. An image with a tag and a digest looks
	// the same up to the digest.
	passwordRegexp = regexp.MustCompile("[^\\s/:@\"'`<>]+:[^\\s/@\"'`<>]+@(sha[0-9]+:)?")
)

// RedactURL returns a URL without its credentials, the values of its query and its fragment, cut to a
// sensible length.
func RedactURL(url string) string {
	return freeform.Clip(redact(url), urlLimit)
}

// RedactMessage returns a message in which no URL holds credentials, values of a query or a fragment, cut
// to a length that a condition can hold.
func RedactMessage(message string) string {
	return freeform.Clip(redact(message), messageLimit)
}

func redact(text string) string {
	text = urlRegexp.ReplaceAllStringFunc(text, redactURL)
	text = parameterRegexp.ReplaceAllString(text, "${1}"+redacted)
	return passwordRegexp.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasSuffix(match, ":") {
			return match
		}
		return redacted + "@"
	})
}

// redactURL redacts a match of urlRegexp. Of a URL whose host does not look like one, the scheme is all
// that remains: part of a password may have been taken for it.
func redactURL(match string) string {
	parts := urlRegexp.FindStringSubmatch(match)
	scheme, rest := parts[1], parts[2]
	url := rest
	if quote := strings.IndexAny(url, "\"`<>"); quote >= 0 {
		url = url[:quote]
	}
	url = strings.TrimRight(url, `',.;:)`)
	punctuation := rest[len(url):]

	authority, path := url, ""
	if end := strings.IndexAny(url, `/\?#`); end >= 0 {
		authority, path = url[:end], url[end:]
	}
	host := authority[strings.LastIndex(authority, "@")+1:]
	if !hostRegexp.MatchString(host) || (strings.Contains(host, ":") && mayEndCredentials(path)) || mayEndCredentials(punctuation) {
		return scheme + redacted
	}
	return scheme + host + redactQuery(path) + punctuation
}

// mayEndCredentials is true for text with an @ that is not part of the digest of an image: what looks like a
// host and a port in front of it may be a name and the beginning of a password.
func mayEndCredentials(text string) bool {
	return strings.Contains(strings.ReplaceAll(text, "@sha", ""), "@")
}

// redactQuery drops the fragment and the values of the query. A parameter without a name is all value.
func redactQuery(path string) string {
	path, _, _ = strings.Cut(path, "#")
	path, query, found := strings.Cut(path, "?")
	if !found {
		return path
	}
	parameters := strings.Split(query, "&")
	for i, parameter := range parameters {
		if name, _, named := strings.Cut(parameter, "="); named {
			parameters[i] = name + "=" + redacted
		} else if parameter != "" {
			parameters[i] = redacted
		}
	}
	return path + "?" + strings.Join(parameters, "&")
}
