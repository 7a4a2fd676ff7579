import holdfast
holdfast.log("accuracy", 0.9, step=1)
holdfast.log("loss", float("nan"), step=1)
holdfast.upload("notes.txt", "note")
open("outputs/model.txt", "w").write("model")
open("stray.txt", "w").write("stray")
print("hello from an old run")
