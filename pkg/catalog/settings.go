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

package catalog

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cozystack/workerimage-apiserver/pkg/internal/quantity"
)

const (
	defaultImageFactoryURL = "https://factory.talos.dev"
	defaultStorage         = "6Gi"

	httpPrefix  = "http://"
	httpsPrefix = "https://"
)

// setting is an optional key of the catalog and of its images: what the catalog says is the default of the
// images. An empty string counts as absent in both places.
type setting struct {
	key string
	// fallback is the default of a catalog that does not say.
	fallback string
	// acceptNumber is true where a number without quotes cannot be misread.
	acceptNumber bool
	// of returns where an entry keeps the value.
	of func(*Entry) *string
	// parse reads a text that is not empty.
	parse func(string) value
}

// value is the value of a setting, or what is wrong with it and what is accepted. It is zero where there is
// neither.
type value struct {
	text  string
	wrong string
}

func settings() []setting {
	return []setting{
		{
			key: "imageFactoryURL", fallback: defaultImageFactoryURL, parse: parseURL,
			of: func(e *Entry) *string { return &e.ImageFactoryURL },
		},
		{
			key: "storage", fallback: defaultStorage, acceptNumber: true, parse: parseSize,
			of: func(e *Entry) *string { return &e.Storage },
		},
		{
			key: "storageClass", parse: parseName,
			of: func(e *Entry) *string { return &e.StorageClass },
		},
		{
			key: "checksum", parse: parseChecksum,
			of: func(e *Entry) *string { return &e.Checksum },
		},
		{
			key: "certConfigMap", parse: parseName,
			of: func(e *Entry) *string { return &e.CertConfigMap },
		},
	}
}

func settingKeys() []string {
	var keys []string
	for _, setting := range settings() {
		keys = append(keys, setting.key)
	}
	return keys
}

// documentKeys are the accepted keys of a catalog.
func documentKeys() []string {
	return append(settingKeys(), imagesKey)
}

// imageKeys are the accepted keys of an image.
func imageKeys() []string {
	return append([]string{schematicIDKey, versionKey}, settingKeys()...)
}

// readDefaults returns the defaults of the images, in the order of the settings.
func readDefaults(document mapping) []value {
	var defaults []value
	for _, setting := range settings() {
		read := setting.read(document)
		if read == (value{}) {
			read.text = setting.fallback
		}
		defaults = append(defaults, read)
	}
	return defaults
}

// read returns the value that a mapping gives to the setting, nothing where it does not.
func (s setting) read(keys mapping) value {
	text, wrong := keys.text(s.key, s.acceptNumber)
	if text == "" {
		return value{wrong: wrong}
	}
	return s.parse(text)
}

// parseURL never quotes the URL, for it may hold credentials.
func parseURL(text string) value {
	var wrong string
	parsed, err := url.Parse(text)
	switch {
	case !strings.HasPrefix(text, httpPrefix) && !strings.HasPrefix(text, httpsPrefix):
		wrong = "does not begin with http:// or https://"
	case strings.ContainsFunc(text, isForbiddenInURL):
		wrong = "holds a blank, a quote, a backtick or a $"
	case err != nil:
		wrong = "is not a URL"
	case parsed.Hostname() == "":
		wrong = "names no host"
	case strings.Contains(text, "#"):
		wrong = "holds a fragment, which the path of an image cannot follow"
	default:
		return value{text: strings.TrimRight(text, "/")}
	}
	return value{wrong: fmt.Sprintf("%s: an http or https URL without blanks, quotes, backticks and $ is accepted, such as %s",
		wrong, defaultImageFactoryURL)}
}

func isForbiddenInURL(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`$", r)
}

func parseSize(text string) value {
	if size, err := quantity.Parse(text); err != nil || size.Sign() <= 0 {
		return value{wrong: fmt.Sprintf("%s is not accepted: a size is a positive quantity, such as %s", quote(text), defaultStorage)}
	}
	return value{text: text}
}

func parseName(text string) value {
	if problems := validation.IsDNS1123Subdomain(text); len(problems) > 0 {
		return value{wrong: fmt.Sprintf("%s is not accepted: %s", quote(text), strings.Join(problems, "; "))}
	}
	return value{text: text}
}

// parseChecksum accepts what CDI does: blanks around both parts and capital letters too.
func parseChecksum(text string) value {
	algorithm, hash, _ := strings.Cut(text, ":")
	hash = strings.TrimSpace(hash)
	_, err := hex.DecodeString(hash)
	if length, known := hashLength(strings.ToLower(strings.TrimSpace(algorithm))); !known || len(hash) != length || err != nil {
		return value{wrong: fmt.Sprintf("%s is not accepted: a checksum is md5:, sha1:, sha256: or sha512: and the hash in hexadecimal",
			quote(text))}
	}
	return value{text: text}
}

// hashLength returns the number of hexadecimal digits of a hash, and false for an algorithm that CDI does
// not know.
func hashLength(algorithm string) (int, bool) {
	switch algorithm {
	case "md5":
		return 32, true
	case "sha1":
		return 40, true
	case "sha256":
		return 64, true
	case "sha512":
		return 128, true
	}
	return 0, false
}
