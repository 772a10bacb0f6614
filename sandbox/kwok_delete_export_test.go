package sandbox

// EndedOnly is for kwok_delete_test.go.
var EndedOnly = endedOnly
