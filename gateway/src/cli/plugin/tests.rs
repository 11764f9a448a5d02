use super::*;

#[test]
fn a_file_that_is_not_there_is_named_with_a_hint() {
    let command = PluginCommand::Inspect {
        file: "no-such.wasm".into(),
    };
    let error = run(command, &mut Vec::new(), &mut Vec::new()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("reading no-such.wasm: "), "{text}");
    assert!(text.contains("\nhint: "), "{text}");
}
