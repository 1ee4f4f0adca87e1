func.func private @g() {
  return
}
func.func @main() {
  call @f() : () -> ()
  return
}
func.func private @f() {
  call @g() : () -> ()
  return
}
