"""A text classifier of Hugging Face with an honest "I don't know": a tiny BERT of random weights.

Batches are the dictionaries that the model takes, with the labels among them. A network of random
weights knows little, so vacuity is high throughout; unknown words raise it, and are flagged.
Run: python examples/pretrained_huggingface.py
"""

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

from dipedl.pretrained import DIPModule

VOCABULARY, LENGTH, N_CLASSES = 60, 12, 2


def texts(n: int, low: int, high: int) -> list[dict[str, torch.Tensor]]:
    """Tokenised texts of tokens low..high: the second class uses the upper half of them."""
    half = (high - low) // 2
    rows = []
    for i in range(n):
        label, length = i % N_CLASSES, int(torch.randint(4, LENGTH + 1, ()))
        mask = (torch.arange(LENGTH) < length).long()
        words = torch.randint(low, low + half, (LENGTH,)) + label * half
        rows.append(
            {"input_ids": words * mask, "attention_mask": mask, "labels": torch.tensor(label)}
        )
    return rows


def main() -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
        num_labels=N_CLASSES,
    )
    network = BertForSequenceClassification(config).eval()
    # the confidence of random weights says nothing
    model = DIPModule(network, classes=["calm", "angry"], score="density")
    model.fit_density(DataLoader(texts(300, 1, 31), batch_size=50))
    print(model.describe().splitlines()[0])

    for name, (low, high) in {"known words": (1, 31), "unknown words": (31, 60)}.items():
        batch = next(iter(DataLoader(texts(50, low, high), batch_size=50)))
        inputs = {key: batch[key] for key in ("input_ids", "attention_mask")}
        with torch.no_grad():
            flagged = (model.predict_ood(**inputs) == -1).float().mean()
            print(f"{name}: vacuity {model(**inputs).vacuity.mean():.2f}, flagged {flagged:.0%}")


if __name__ == "__main__":
    main()
