from dipedl_bench.results.paper import (
    Published,
    published,
    published_rows,
    published_toy,
    same_method,
)


def test_golden_cells():
    dip = published("mnist", "DIP-EDL")
    assert dip["brier_id"] == Published(0.0081, 0.0005)
    assert dip["brier_ood/kmnist"] == Published(0.0013, 0.0002)
    assert published("mnist", "EDL")["accuracy"] == Published(0.9166, 0.0498)
    assert published("lamost", "EDL")["auroc/stars"] == Published(0.4934, 0.1710)
    assert published("gamma_mnist", "10")["brier_ood/kmnist"].mean == 0.0034
    assert published("sigma_mnist", "inf")["auroc/kmnist"] == Published(0.5016, 0.0031)
    assert published("ablation_mnist", "2b")["auroc/omniglot"] == Published(0.5299, None)
    assert published("ablation_mnist", "1c")["brier_id"].mean == 0.7446


def test_all_tables_have_their_rows():
    assert len(published_rows("mnist")) == len(published_rows("cifar10")) == 8
    assert list(published_rows("gamma_mnist")) == ["0.1", "0.5", "1", "2", "5", "10"]
    assert list(published_rows("sigma_mnist")) == ["0", "0.5", "1", "2", "5", "inf"]
    assert set(published_rows("ablation_mnist")) == {"1a", "1b", "1c", "2a", "2b", "2c", "3"}
    assert all(len(cells) == 8 for cells in published_rows("mnist").values())


def test_toy_vacuity():
    toy = published_toy()
    assert list(toy) == [1, 5, 10, 50, 100, 500]
    assert toy[50] == Published(0.038, 0.0002, 3)


def test_names_of_methods():
    assert same_method("R-EDL", "redl") and same_method("MC Dropout", "mc_dropout")
    assert not same_method("R-EDL", "Re-EDL")
