package v1

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"holdfast/acp/schema"
)

// messages has an empty value for the parameters and the result of each method; everything else that is generated is reached from here.
var messages = map[string][2]any{
	MethodAuthenticate:             {&AuthenticateRequest{}, &AuthenticateResponse{}},
	MethodCancelRequest:            {&CancelRequestNotification{}, nil},
	MethodElicitationComplete:      {&CompleteElicitationNotification{}, nil},
	MethodElicitationCreate:        {&CreateElicitationRequest{}, &CreateElicitationResponse{}},
	MethodFsReadTextFile:           {&ReadTextFileRequest{}, &ReadTextFileResponse{}},
	MethodFsWriteTextFile:          {&WriteTextFileRequest{}, &WriteTextFileResponse{}},
	MethodInitialize:               {&InitializeRequest{}, &InitializeResponse{}},
	MethodLogout:                   {&LogoutRequest{}, &LogoutResponse{}},
	MethodSessionCancel:            {&CancelNotification{}, nil},
	MethodSessionClose:             {&CloseSessionRequest{}, &CloseSessionResponse{}},
	MethodSessionDelete:            {&DeleteSessionRequest{}, &DeleteSessionResponse{}},
	MethodSessionList:              {&ListSessionsRequest{}, &ListSessionsResponse{}},
	MethodSessionLoad:              {&LoadSessionRequest{}, &LoadSessionResponse{}},
	MethodSessionNew:               {&NewSessionRequest{}, &NewSessionResponse{}},
	MethodSessionPrompt:            {&PromptRequest{}, &PromptResponse{}},
	MethodSessionRequestPermission: {&RequestPermissionRequest{}, &RequestPermissionResponse{}},
	MethodSessionResume:            {&ResumeSessionRequest{}, &ResumeSessionResponse{}},
	MethodSessionSetConfigOption:   {&SetSessionConfigOptionRequest{}, &SetSessionConfigOptionResponse{}},
	MethodSessionSetMode:           {&SetSessionModeRequest{}, &SetSessionModeResponse{}},
	MethodSessionUpdate:            {&SessionNotification{}, nil},
	MethodTerminalCreate:           {&CreateTerminalRequest{}, &CreateTerminalResponse{}},
	MethodTerminalKill:             {&KillTerminalRequest{}, &KillTerminalResponse{}},
	MethodTerminalOutput:           {&TerminalOutputRequest{}, &TerminalOutputResponse{}},
	MethodTerminalRelease:          {&ReleaseTerminalRequest{}, &ReleaseTerminalResponse{}},
	MethodTerminalWaitForExit:      {&WaitForTerminalExitRequest{}, &WaitForTerminalExitResponse{}},
}

// validator checks values against definitions of the official schema.
type validator struct{ resolved *jsonschema.Resolved }

func newValidator(t *testing.T) validator {
	t.Helper()
	var root jsonschema.Schema
	if err := json.Unmarshal(schema.V1, &root); err != nil {
		t.Fatal(err)
	}
	one := &jsonschema.Schema{Schema: root.Schema, Defs: root.Defs, Properties: map[string]*jsonschema.Schema{}}
	for name := range root.Defs {
		one.Properties[name] = &jsonschema.Schema{Ref: "#/$defs/" + name}
	}
	resolved, err := one.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return validator{resolved}
}

func (v validator) check(def string, raw []byte) error {
	var instance any
	if err := json.Unmarshal(raw, &instance); err != nil {
		return err
	}
	return v.resolved.Validate(map[string]any{def: instance})
}

func TestMethods_AreThoseOfTheOfficialTable(t *testing.T) {
	var meta map[string]any
	if err := json.Unmarshal(schema.V1Meta, &meta); err != nil {
		t.Fatal(err)
	}
	n := 0
	for side, key := range map[string]string{"agent": "agentMethods", "client": "clientMethods", "protocol": "protocolMethods"} {
		for _, name := range meta[key].(map[string]any) {
			n++
			if m, ok := Methods[name.(string)]; !ok || m.Side != side {
				t.Errorf("%s is %+v, want the side %s", name, m, side)
			}
		}
	}
	if n != len(Methods) || n != len(messages) {
		t.Errorf("%d methods and %d in the test's table, want %d", len(Methods), len(messages), n)
	}
}

// TestMessages_FilledAtRandomFitTheSchema writes messages with random members, checks them against the official schema, and reads them back.
func TestMessages_FilledAtRandomFitTheSchema(t *testing.T) {
	valid := newValidator(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	variants := map[string]bool{}
	for name, pair := range messages {
		for i, def := range []string{Methods[name].Params, Methods[name].Result} {
			if (pair[i] == nil) != (def == "") {
				t.Fatalf("%s: the table has %T for %q", name, pair[i], def)
			}
			if def == "" {
				continue
			}
			f := filler{rand.New(rand.NewPCG(seed, uint64(len(name)*2+i))), variants}
			rounds := 100
			if name == MethodElicitationCreate || name == MethodSessionUpdate { // have the most variants, and the deepest
				rounds = 1000
			}
			for range rounds {
				roundTrip(t, valid, f, def, reflect.TypeOf(pair[i]).Elem())
			}
		}
	}
	for name, seen := range variants {
		if !seen {
			t.Errorf("the variant %s never came up", name)
		}
	}
	t.Logf("%d variants of unions", len(variants))
}

func roundTrip(t *testing.T, valid validator, f filler, def string, typ reflect.Type) {
	t.Helper()
	v := reflect.New(typ)
	f.fill(v.Elem(), 0)
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatalf("write %s: %v", def, err)
	}
	if err := valid.check(def, raw); err != nil {
		t.Fatalf("%s is not valid: %v\n%s", def, err, raw)
	}
	back := reflect.New(typ)
	if err := Decode(raw, back.Interface()); err != nil {
		t.Fatalf("read %s: %v\n%s", def, err, raw)
	}
	again, err := json.Marshal(back.Interface())
	if err != nil {
		t.Fatalf("write %s again: %v", def, err)
	}
	if string(again) != string(raw) {
		t.Fatalf("%s changed on the way\nfrom %s\nto   %s", def, raw, again)
	}
	std := reflect.New(typ)
	if err := json.Unmarshal(raw, std.Interface()); err != nil || !reflect.DeepEqual(std.Interface(), back.Interface()) {
		t.Fatalf("encoding/json reads %s otherwise (%v)\n%s", def, err, raw)
	}
}

// filler fills values at random, and remembers which variants it chose.
type filler struct {
	r    *rand.Rand
	seen map[string]bool
}

func (f filler) fill(v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *RequestID:
		*p = RequestID([]string{"1", "-5", `"id"`, "null"}[f.r.IntN(4)])
		return
	case *ElicitationContentValue:
		p.Value = []any{"text", int64(7), 2.5, true, []string{"a"}}[f.r.IntN(5)]
		return
	case *SessionConfigSelectOptions:
		list := reflect.ValueOf(p).Elem().Field(f.r.IntN(2)) // one of its two lists
		if f.fill(list, depth+1); list.Len() == 0 {
			*p = SessionConfigSelectOptions{Ungrouped: []SessionConfigSelectOption{}}
		}
		return
	case *Meta:
		if f.r.IntN(3) == 0 {
			*p = Meta{"example.org/x": map[string]any{"n": 1.5}}
		}
		return
	case isUnion:
		f.fields(v, depth)
		f.choose(p.union(), v.Type().Name(), depth)
		return
	case hasValues:
		values := p.values()
		v.SetString(values[f.r.IntN(len(values))])
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		f.fields(v, depth)
	case reflect.Pointer:
		if f.r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		for range f.r.IntN(3) {
			e := reflect.New(v.Type().Elem()).Elem()
			f.fill(e, depth+1)
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		if f.r.IntN(2) == 0 {
			e := reflect.New(v.Type().Elem()).Elem()
			f.fill(e, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("key"), e)
		}
	case reflect.Interface:
		if f.r.IntN(2) == 0 {
			v.Set(reflect.ValueOf(json.RawMessage(`{"any":["thing",null]}`)))
		}
	case reflect.String:
		v.SetString([]string{"a", "words <&> \"quoted\"", "é\n"}[f.r.IntN(3)])
	case reflect.Bool:
		v.SetBool(f.r.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(float64(f.r.IntN(4)) / 4)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.r.Uint64N(3))
	default:
		v.SetInt(f.r.Int64N(3))
	}
}

func (f filler) fields(v reflect.Value, depth int) {
	for _, info := range fieldsOf(v.Type()) {
		f.fill(v.Field(info.index), depth+1)
	}
}

func (f filler) choose(u union, name string, depth int) {
	for _, v := range u.variants {
		key := name + "." + v.value + v.name
		if !f.seen[key] {
			f.seen[key] = false // known, not yet filled
		}
	}
	c := u.variants[f.r.IntN(len(u.variants))]
	f.seen[name+"."+c.value+c.name] = true
	field := reflect.ValueOf(c.at).Elem()
	field.Set(reflect.New(field.Type().Elem()))
	f.fill(field.Elem(), depth+1)
}
