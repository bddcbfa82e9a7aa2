package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tattler-dev/tattler/internal/spell"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// setDefaults fills the structs that p points to from their default tags.
func setDefaults(p any) {
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		text, ok := f.Tag.Lookup("default")
		switch {
		case !f.IsExported():
		case ok:
			if err := setText(v.Field(i), text); err != nil {
				panic(fmt.Sprintf("the default of %s: %v", f.Name, err))
			}
		case f.Type.Kind() == reflect.Struct:
			setDefaults(v.Field(i).Addr().Interface())
		}
	}
}

// setText parses the text of a scalar.
func setText(v reflect.Value, text string) error {
	switch {
	case v.Type() == durationType:
		d, err := parseDuration(text)
		v.SetInt(int64(d))
		return err
	case v.CanAddr() && v.Addr().Type().Implements(textType):
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("want true or false")
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64, reflect.Int32:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return errors.New("want a whole number")
		}
		v.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return errors.New("want a number")
		}
		v.SetFloat(n)
	default:
		panic("a configuration cannot hold a " + v.Type().String())
	}
	return nil
}

// scalar decodes text, numbers and booleans. Errors do not repeat credentials.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, key string, enum []string) {
	text := n.Value
	isText := v.Kind() == reflect.String && !v.Addr().Type().Implements(textType)
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fail(n, key, "want %s; this is %s", wanted(v, enum), nodeKind(n))
		return
	case n.Tag == "!!null":
		d.fail(n, key, "no value; want %s", wanted(v, enum))
		return
	case isText && n.Tag != "!!str":
		d.fail(n, key, "want text; this is %s: put it in quotes", nodeKind(n))
		return
	case v.Kind() == reflect.Bool && slices.Contains([]string{"yes", "no", "on", "off"}, strings.ToLower(text)):
		d.fail(n, key, "want true or false")
		return
	case v.Kind() == reflect.String:
		expanded, err := d.expand(text)
		if err != nil {
			d.fail(n, key, "%v", err)
			return
		}
		text = expanded
	}
	err := setText(v, text)
	switch {
	case err != nil:
		d.fail(n, key, "%s", d.secrets.hide(err.Error()))
	case len(enum) == 1 && text != enum[0]:
		d.fail(n, key, "want %s", enum[0])
	case enum != nil && !slices.Contains(enum, text):
		d.fail(n, key, "%q is not one of %s%s", d.secrets.hide(text), strings.Join(enum, ", "), meant(text, enum))
	}
}

func meant(text string, known []string) string {
	if near := spell.Nearest(text, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

func wanted(v reflect.Value, enum []string) string {
	switch kind := v.Kind(); {
	case len(enum) > 0:
		return "one of " + strings.Join(enum, ", ")
	case v.Type() == durationType:
		return "a duration such as 90s or 30d"
	case kind == reflect.String:
		return "text"
	case kind == reflect.Bool:
		return "true or false"
	case strings.HasSuffix(v.Type().Name(), "Size"):
		return "a size such as 100Mi"
	}
	return "a number"
}
