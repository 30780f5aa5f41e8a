package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gswitch/frame"
	"gswitch/options"
	"gswitch/section"
	"gswitch/transport"
	"gswitch/units"
)

// RecoveryOptions are the options of schemes of loss recovery, as keys in documents of
// hosts and in scenarios. The schemes describe them (transport.Kind.Params).
type RecoveryOptions struct {
	Set section.Extra[recoveryOptions]
}

type recoveryOptions struct{}

// Kinds returns a key for each option of any scheme.
func (recoveryOptions) Kinds() []section.Kind {
	var kinds []section.Kind
	for _, k := range transport.Kinds() {
		for i := range k.Params {
			if name := k.Params[i].Name; !slices.ContainsFunc(kinds, func(k section.Kind) bool { return k.Key == name }) {
				kinds = append(kinds, optionKind(&k.Params[i]))
			}
		}
	}
	return kinds
}

// optionKind is the key of an option. It has no default, as that depends on the scheme.
func optionKind(p *options.Param) section.Kind {
	k := section.Kind{Key: p.Name, Doc: describeOption(p.Name)}
	switch p.Unit {
	case options.Flag:
		k.Type = reflect.TypeFor[bool]()
	case options.Count:
		k.Type = reflect.TypeFor[int]()
		k.Tag = reflect.StructTag(fmt.Sprintf(`range:"%.0f,%.0f"`, p.Min, p.Max))
	case options.Time:
		k.Type = reflect.TypeFor[units.Duration]()
	case options.Choice:
		k.Type = reflect.TypeFor[string]()
		k.Tag = reflect.StructTag(fmt.Sprintf(`enum:"%s"`, strings.Join(p.Choices, ",")))
	default:
		panic("config: no key for options of unit " + string(p.Unit))
	}
	return k
}

// describeOption says what an option means to the schemes that have it.
func describeOption(name string) string {
	type meaning struct {
		schemes []string
		text    string
	}
	var all []meaning
	for _, k := range transport.Kinds() {
		i := slices.IndexFunc(k.Params, func(p options.Param) bool { return p.Name == name })
		if i < 0 {
			continue
		}
		text := fmt.Sprintf("%s. %s if left out.", k.Params[i].Doc, k.Params[i].Default)
		if at := slices.IndexFunc(all, func(m meaning) bool { return m.text == text }); at >= 0 {
			all[at].schemes = append(all[at].schemes, k.Name)
		} else {
			all = append(all, meaning{[]string{k.Name}, text})
		}
	}
	parts := make([]string, len(all))
	for i, m := range all {
		parts[i] = strings.Join(m.schemes, ", ") + ": " + m.text
	}
	return strings.Join(parts, " ")
}

// Given returns the options that are set, as transport.Kind.Configure takes them.
func (o *RecoveryOptions) Given() map[string]string {
	given := map[string]string{}
	for _, k := range (recoveryOptions{}).Kinds() {
		switch v := o.Set.Get(k.Key).(type) {
		case *bool:
			given[k.Key] = strconv.FormatBool(*v)
		case *int:
			given[k.Key] = strconv.Itoa(*v)
		case *units.Duration:
			given[k.Key] = options.Format(float64(frame.Time(*v)), options.Time)
		case *string:
			given[k.Key] = *v
		}
	}
	return given
}
