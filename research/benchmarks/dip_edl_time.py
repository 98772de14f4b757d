"""Time of one seed of DIP-EDL on full MNIST, both trainings; for idle cores.

    python benchmarks/dip_edl_time.py [FOLDER]

With a FOLDER, a run that is there already is read, and one that was stopped goes on.
"""

import sys
import tempfile

import receipt

from dipedl_bench import load_rows, run

SEED = 10
#: Multiplications of one image in one pass, from the shapes of the layers; a pass back costs two.
NETWORK_MAC = 16.4e6
IMAGES, EPOCHS = 48_000, 12
#: The paper's flow and ResNet-18, 50 epochs each: 443.5 and 456 million of them.
PAPER_MAC = 443.5e6 + 456e6
PAPER_EPOCHS = 50


def main(folder: str) -> None:
    run("mnist", profile="cpu", methods=["dip-edl"], seeds=[SEED], out=folder, progress=print)
    row = load_rows("mnist", "cpu", folder)[-1]
    parts = row["parts"]
    ours = 6 * NETWORK_MAC * IMAGES * EPOCHS
    paper = 6 * PAPER_MAC * IMAGES * PAPER_EPOCHS
    values = {
        "train_minutes": round(row["seconds"]["train"] / 60, 2),
        "score_seconds": round(row["seconds"]["score"], 1),
        "classifier_train_seconds": parts["classifier"]["seconds"]["train"],
        "density_train_seconds": parts["density"]["seconds"]["train"],
        "load_average": parts["classifier"]["load"],
        "training_pflop": round(ours / 1e15, 3),
        "training_pflop_of_the_paper": round(paper / 1e15, 1),
        "paper_over_ours": round(paper / ours),
        "metrics": {k: row["metrics"][k] for k in ("accuracy", "brier_id", "brier_ood/kmnist")},
    }
    config = {"suite": "mnist", "profile": "cpu", "seed": SEED, "row": row["config_hash"]}
    receipt.write("dip_edl_time", config, values, row["seconds"]["train"] + row["seconds"]["score"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(temporary)
